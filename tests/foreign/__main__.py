"""``python -m tests.foreign``: records aarch64.core.xz anew, in about two minutes. Needs qemu-system-aarch64 and cpio
(Debian: qemu-system-arm, cpio); kernel and Python are fetched from Debian, beside the machine's own packages."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import List

from ..interpreters.apt import PrivateApt
from ..interpreters.debian import unpack
from ..interpreters.steps import Unavailable, run, say

HERE = Path(__file__).resolve().parent
CORE = HERE / "aarch64.core.xz"
_PYTHON = ("python3.11-minimal", "libpython3.11-stdlib")
_KERNEL = "linux-image-cloud-arm64"


def machine(scratch: Path) -> List[str]:
    """Unpacks kernel and Python; the command that boots them. What it prints goes to ``scratch``/console."""
    apt = PrivateApt(scratch / "apt", suite="bookworm", architecture="arm64")
    root, boot = scratch / "root", scratch / "kernel"
    root.mkdir()
    boot.mkdir()
    unpack(apt.download(_PYTHON), root)
    unpack([file for file in apt.download([_KERNEL]) if file.name.startswith("linux-image-6")], boot)
    (root / "srv").mkdir(exist_ok=True)
    shutil.copy(HERE / "program.py", root / "srv")
    shutil.copy(HERE / "init.py", root / "init")
    (root / "init").chmod(0o755)
    run(["sh", "-c", "find . | cpio -o -H newc --quiet | gzip -1 > ../initrd"], cwd=root)
    return [
        "qemu-system-aarch64",
        "-M",
        "virt",
        "-cpu",
        "cortex-a72",
        "-smp",
        "2",
        "-m",
        "1500",
        "-nic",
        "none",
        "-kernel",
        str(next((boot / "boot").glob("vmlinuz-*"))),
        "-initrd",
        str(scratch / "initrd"),
        "-append",
        "console=ttyAMA0 quiet rdinit=/init",
        "-serial",
        f"file:{scratch / 'console'}",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
    ]


def printed(console: str) -> bytes:
    """What init.py has printed. Raises Unavailable when it is not whole."""
    lines = console.replace("\r", "").splitlines()
    wanted = next((line.split()[1] for line in lines if line.startswith("core ")), None)
    packed = base64.b85decode("".join(line[1:] for line in lines if line.startswith("|")))
    if wanted is None or hashlib.sha256(packed).hexdigest() != wanted:
        raise Unavailable("the console has no whole core: " + " / ".join(lines[-3:])[-300:])
    return packed


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="postmortem-foreign-") as folder:
        scratch = Path(folder)
        try:
            command = machine(scratch)
            say("aarch64", "booting")
            run(command)
            CORE.write_bytes(printed((scratch / "console").read_text(errors="replace")))
        except Unavailable as error:
            say("aarch64", f"no core: {error}")
            return 1
    say("aarch64", f"{CORE.stat().st_size >> 10} KB in {CORE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
