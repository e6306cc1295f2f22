"""Prints the day's report: the printer's filter takes it from the spool, where another program puts it."""
import os
import sys
import tempfile

FILTER = "import sys; sys.stdout.writelines(line.rstrip() + '\\n' for line in sys.stdin)"


class Spool:
    def __init__(self, folder):
        self.path = os.path.join(folder, "report")
        os.mkfifo(self.path)

    def filter(self):
        opens = [(os.POSIX_SPAWN_OPEN, 0, self.path, os.O_RDONLY, 0)]
        return os.posix_spawn(sys.executable, [sys.executable, "-c", FILTER], os.environ, file_actions=opens)  # CULPRIT

    def put(self, lines):
        with open(self.path, "w") as out:
            out.writelines(line + "\n" for line in lines)


def main():
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(folder)
        print("ready", flush=True)
        pid = spool.filter()  # CULPRIT
        spool.put("%d;%d" % (n, n * n) for n in range(20))
        _, status = os.waitpid(pid, 0)
        print("printed" if status == 0 else "not printed")


if __name__ == "__main__":
    main()
