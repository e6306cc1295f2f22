"""Grades answers of a programming course: each runs in a traced child, so that its system calls can be judged."""
import ctypes
import os
import signal

TRACEME, CONT, SETOPTIONS = 0, 7, 0x4200
EXITKILL = 1 << 20

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


class Answer:
    def __init__(self, text):
        self.text = text

    def run(self):
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        exec(compile(self.text, "answer", "exec"), {})


class Grader:
    def __init__(self, answer):
        self.answer = answer
        self.stops = 0
        self.pid = 0

    def start(self):
        self.pid = os.fork()
        if not self.pid:
            try:
                self.answer.run()
            finally:
                os._exit(0)
        os.waitpid(self.pid, os.WUNTRACED)
        ptrace(SETOPTIONS, self.pid, EXITKILL)
        ptrace(CONT, self.pid)

    def next_stop(self):
        _, status = os.waitpid(self.pid, 0)  # CULPRIT
        return status

    def grade(self):
        while True:
            status = self.next_stop()
            if not os.WIFSTOPPED(status):
                return os.WEXITSTATUS(status)
            self.stops += 1
            if os.WSTOPSIG(status) == signal.SIGTRAP:  # CULPRIT
                ptrace(CONT, self.pid)
            else:
                print("ready", flush=True)


def main():
    grader = Grader(Answer("import os, signal\nos.kill(os.getpid(), signal.SIGWINCH)\nprint(sum(range(1000)))"))
    grader.start()
    print("grade", grader.grade(), "after", grader.stops, "stops")


if __name__ == "__main__":
    main()
