"""Two long attacks, run again and again: ``python -m tests.attacks.campaign --only libraries --count 200``.

*libraries*: commands that time out while the libraries that they have loaded are overwritten, truncated and replaced in a loop.
Each capture ends with status 124, leaves a bundle, and ends its tree.

*directories*: root captures a process of another user in that user's directory, while another of the user's processes renames
the bundle, lays links in its place, and turns the program's source into a link to a file of root's. Nothing appears
outside the bundle, and nothing of root's in it or in what is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List

ROOT = Path(__file__).resolve().parents[2]
ATTACKER = 65534
SECRET = "the-secret-that-root-alone-may-read"
PYTHON = "/usr/bin/python3"  # one that every user may run
DEADLINE_S = 120.0

TARGET = """
import ctypes, sys, time
held = [ctypes.CDLL(name) for name in sys.argv[2:]]
open(sys.argv[1], "w").close()
print("up", flush=True)
time.sleep(600)
"""


def capture(words: List[str], **settings: object) -> subprocess.CompletedProcess[bytes]:
    """``postmortem capture`` with its real diagnosis; what it says goes to a file, which a tree that is left may hold open."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as said:
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            [sys.executable, "-m", "postmortem", "capture", "--observe", "0.1", *words],
            check=False,
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            timeout=DEADLINE_S,
            env=environment,
            **settings,  # type: ignore[call-overload]
        )
        said.seek(0)
        done.stdout, done.stderr = b"", said.read()
        return done


# ---------------------------------------------------------------------- libraries


def libraries(count: int, folder: Path) -> List[str]:
    """Run the first campaign; returns what went wrong, one line each."""
    originals = _some_libraries()
    copies = [folder / path.name for path in originals]
    for original, copy in zip(originals, copies):
        shutil.copyfile(original, copy)
    program = folder / "target.py"
    program.write_text(TARGET)
    wrong = []
    for number in range(count):
        bundle, loaded = folder / f"bundle-{number}", folder / f"loaded-{number}"
        with _vandal(originals, copies, loaded):
            mode = ("auto", "python")[number % 2]  # the second reads the libraries before anything is stopped as well
            command = [PYTHON, str(program), str(loaded), *map(str, copies)]
            done = capture(["-t", "0.4", "--core", mode, "-o", str(bundle), "--", *command])
        wrong += [f"{number}: {each}" for each in _wrong_with(done, bundle, str(program))]
        shutil.rmtree(bundle, ignore_errors=True)
        _say(number, count, wrong)
    return wrong


def _some_libraries() -> List[Path]:
    found = []
    for name in ("libcrypto.so.3", "libsqlite3.so.0", "libz.so.1", "libexpat.so.1"):
        found += list(Path("/usr/lib").glob(f"*-linux-gnu/{name}")) or list(Path("/lib").glob(f"*-linux-gnu/{name}"))
    if not found:
        raise SystemExit("no library was found to be copied")
    return [path.resolve() for path in found]


@contextlib.contextmanager
def _vandal(originals: List[Path], copies: List[Path], loaded: Path) -> Iterator[None]:
    """Spoils the libraries in a loop, once the target has made the file ``loaded``; they are whole again when the block ends."""
    contents = [path.read_bytes() for path in originals]
    over = threading.Event()

    def spoil() -> None:
        while not loaded.exists() and not over.wait(0.005):
            pass
        chance = random.Random(len(contents))
        while not over.is_set():
            for copy, content in zip(copies, contents):  # whole for a moment, so that it is opened; then less and less
                with copy.open("r+b") as stream:
                    stream.write(content)
            over.wait(chance.uniform(0.0, 0.01))
            for share in (4, 64, 0):
                for copy, content in zip(copies, contents):
                    os.truncate(copy, len(content) // share if share else 0)
                over.wait(chance.uniform(0.0, 0.003))
            for copy in copies:
                copy.write_bytes(os.urandom(8192))

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for copy, content in zip(copies, contents):
            copy.write_bytes(content)


def _wrong_with(done: subprocess.CompletedProcess[bytes], bundle: Path, program: str) -> List[str]:
    said = done.stderr.decode("utf-8", "replace")
    found = []
    if done.returncode != 124:
        found.append(f"status {done.returncode}: {said[-400:]}")
    if not (bundle / "manifest.json").is_file():
        found.append("no bundle")
    if "defect of postmortem" in said or "Traceback" in said:
        found.append(said[-400:])
    for pid in _running(program):
        found.append("the tree is still there")
        os.kill(pid, signal.SIGKILL)
    return found


def _running(program: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if program.encode() in words and words[0] == PYTHON.encode():
                yield int(path.parent.name)


# ---------------------------------------------------------------------- directories

HOSTILE = """
import os, sys, threading, time
folder, secret, victim = sys.argv[1:]
os.setgroups([]); os.setresgid({user}, {user}, {user}); os.setresuid({user}, {user}, {user})
os.chdir(folder)
text = "import time" + chr(10) + "def wait():" + chr(10) + "    time.sleep(600)" + chr(10)
for name in ("app.py", "/tmp/../.." + victim + "/x.py", folder + "/../victim/y.py", "lib.py"):
    scope = dict()
    exec(compile(text, name if name.startswith("/") else folder + "/" + name, "exec"), scope)
    threading.Thread(target=scope["wait"], daemon=True).start()
print("up", flush=True)
number = 0
while True:
    number += 1
    for name in ("app.py", "lib.py"):
        try:
            os.unlink(name)
        except OSError:
            pass
        try:
            if number % 2:
                os.symlink(secret if number % 4 == 1 else "/proc/self/root" + secret, name)
            else:
                os.mkfifo(name) if number % 4 else os.link(secret, name)
        except OSError:
            pass
    for entry in os.listdir("."):
        if entry.startswith("postmortem-"):
            for inside in ("", "/raw", "/raw/cores", "/raw/proc", "/raw/roots"):
                try:
                    os.rename(entry + inside, entry + inside + ".taken")
                    os.symlink(victim, entry + inside)
                    time.sleep(0.001)
                    os.unlink(entry + inside)
                    os.rename(entry + inside + ".taken", entry + inside)
                except OSError:
                    pass
    time.sleep(0.0005)
"""


def directories(count: int, folder: Path) -> List[str]:
    """Run the second campaign; returns what went wrong, one line each."""
    theirs, victim, secret = folder / "theirs", folder / "victim", folder / "secret.py"
    theirs.mkdir()
    os.chown(theirs, ATTACKER, ATTACKER)
    victim.mkdir(mode=0o755)
    secret.write_text(f"# {SECRET}\n" * 50)
    secret.chmod(0o600)
    before = {path: path.stat().st_mtime_ns for path in (folder, victim)}
    words = [PYTHON, "-c", HOSTILE.format(user=ATTACKER), str(theirs), str(secret), str(victim)]
    wrong = []
    with subprocess.Popen(words, stdout=subprocess.PIPE) as hostile:
        assert hostile.stdout is not None
        hostile.stdout.readline()
        try:
            for number in range(count):
                done = capture(["--pid", str(hostile.pid)], cwd=theirs)
                wrong += [f"{number}: {each}" for each in _leaked(done, theirs, victim)]
                if {path: path.stat().st_mtime_ns for path in before} != before:
                    wrong.append(f"{number}: something was made beside the directory")
                _clear(theirs, hostile.pid)
                _say(number, count, wrong)
        finally:
            hostile.kill()
    return wrong


def _clear(theirs: Path, hostile: int) -> None:
    """Remove what the capture has left. The hostile process stands still meanwhile: it renames what is being removed."""
    os.kill(hostile, signal.SIGSTOP)
    os.waitpid(hostile, os.WUNTRACED)
    for left in theirs.glob("postmortem-*"):
        (left.unlink if left.is_symlink() else lambda left=left: shutil.rmtree(left, ignore_errors=True))()
    os.kill(hostile, signal.SIGCONT)


def _leaked(done: subprocess.CompletedProcess[bytes], theirs: Path, victim: Path) -> Iterator[str]:
    said = done.stdout + done.stderr
    if done.returncode not in (0, 125):
        yield f"status {done.returncode}: {said[-400:]!r}"
    if SECRET.encode() in said:
        yield "the secret was said"
    if b"defect of postmortem" in said or b"Traceback" in said:
        yield repr(said[-400:])
    if any(victim.iterdir()):
        yield f"written outside: {sorted(victim.iterdir())}"
    for folder, _inside, files in os.walk(theirs):
        for name in files:
            path = Path(folder) / name
            with contextlib.suppress(OSError):
                if path.lstat().st_uid == 0 and path.is_file() and SECRET.encode() in path.read_bytes():
                    yield f"the secret is in {path}"


def _say(number: int, count: int, wrong: List[str]) -> None:
    if sys.stdout.isatty():
        print(f"\r{number + 1} of {count}, {len(wrong)} wrong", end="", flush=True)


CAMPAIGNS = {"libraries": libraries, "directories": directories}


def run(name: str, count: int) -> List[str]:
    """Run one campaign in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="postmortem-campaign-") as place:
        Path(place).chmod(0o755)
        return CAMPAIGNS[name](count, Path(place))


def main() -> int:
    """Exit status 1 when something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CAMPAIGNS))
    parser.add_argument("--count", type=int, default=200)
    asked = parser.parse_args()
    results: Dict[str, List[str]] = {}
    for name in [asked.only] if asked.only else sorted(CAMPAIGNS):
        began = time.monotonic()
        results[name] = run(name, asked.count)
        print(f"\n{name}: {asked.count} captures, {len(results[name])} wrong, {time.monotonic() - began:.0f} s")
        print("\n".join(results[name][:20]))
    return int(any(results.values()))


if __name__ == "__main__":
    sys.exit(main())
