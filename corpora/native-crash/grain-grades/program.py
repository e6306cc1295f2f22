"""Grades grain samples with small compiled kernels: the table look-up is assembled once, as machine code, and called per sample."""
import ctypes
import mmap
import struct

TRAP = b"\x0f\x0b"
GRADES = [0, 1, 1, 2, 3, 3, 4, 5]


class Assembler:
    """Just enough x86-64 for a checked table look-up."""

    def __init__(self):
        self.code = bytearray()

    def compare_index(self, limit):
        self.code += b"\x81\xff" + struct.pack("<i", limit)

    def trap_unless_below(self):
        self.code += b"\x72" + bytes([len(TRAP)]) + TRAP

    def load_from(self, table):
        self.code += b"\x48\xb8" + struct.pack("<Q", table) + b"\x8b\x04\xb8\xc3"


class CodePage:
    def __init__(self, code):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.memory.write(bytes(code))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


class LookupKernel:
    def __init__(self, values):
        self.values = (ctypes.c_int32 * len(values))(*values)
        assembler = Assembler()
        assembler.compare_index(len(values))
        assembler.trap_unless_below()
        assembler.load_from(ctypes.addressof(self.values))
        self.page = CodePage(assembler.code)
        self.call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32)(self.page.address)

    def __getitem__(self, index):
        return self.call(index)  # CULPRIT


class Grader:
    def __init__(self, grades, step):
        self.kernel = LookupKernel(grades)
        self.step = step

    def grade(self, moisture):
        return self.kernel[int(moisture / self.step)]  # CULPRIT

    def grade_lot(self, samples):
        return [self.grade(moisture) for moisture in samples]


def main():
    grader = Grader(GRADES, step=2.5)
    lots = [[11.0, 12.4, 13.9], [9.8, 14.0, 17.2], [12.2, 20.6, 13.3]]
    print("ready", flush=True)
    for number, samples in enumerate(lots, 1):
        print("lot %d: %s" % (number, grader.grade_lot(samples)))


if __name__ == "__main__":
    main()
