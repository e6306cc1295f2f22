"""Matches customs codes with the POSIX patterns that the tariff office publishes, by the C library's own matcher."""
import ctypes

libc = ctypes.CDLL(None)
libc.regcomp.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
libc.regexec.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int]
EXTENDED = 1


class Pattern:
    def __init__(self, text):
        self.compiled = ctypes.create_string_buffer(256)
        if libc.regcomp(self.compiled, text.encode(), EXTENDED):  # CULPRIT
            raise ValueError(text[:40])

    def matches(self, code):
        return libc.regexec(self.compiled, code.encode(), 0, None, 0) == 0


def chapter_pattern(chapters):
    """One pattern for a range of chapters, each within the one before."""
    return "^" + "(" * chapters + "9999" + ")" * chapters  # CULPRIT


def main():
    codes = ["0101", "9999", "4402"]
    live = Pattern(chapter_pattern(97))
    print("ready", flush=True)
    whole = Pattern(chapter_pattern(97 * 2000))
    for code in codes:
        print(code, live.matches(code), whole.matches(code))


if __name__ == "__main__":
    main()
