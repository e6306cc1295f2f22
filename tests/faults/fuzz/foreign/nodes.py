"""Damage to what a file is: a FIFO, a device, a link, a directory in its place; files that no capture writes."""

from __future__ import annotations

import random
from typing import Tuple

from .inputs import Input, Node

_LEADS = (
    b"/dev/zero", b"/dev/full", b"/dev/tty", b"/etc/shadow", b"/proc/self/mem", b"/proc/kmsg", b"/", b".", b"nowhere",
    b"../../../../../etc/passwd", b"/proc/self/fd/0", b"/sys/kernel/debug/tracing/trace_pipe",
)  # fmt: skip
_NAMES = (
    "raw/proc/²/process.json", "raw/proc/٣/process.json", "raw/cores/².core", "raw/cores/٣.core", "raw/proc/0/window.json",
    "raw/proc/99999999999999999999999/process.json", "raw/pyspy/².chrometrace.json", "raw/exe/1", "raw/roots/1/x",
    "raw/proc/-1/process.json", "raw/proc/machine.json", "raw/proc/sharers.json",
)  # fmt: skip


def damaged(given: Input, name: str, rng: random.Random) -> Tuple[Input, str]:
    """Puts something else in place of the file ``name``."""
    kind = rng.choice(
        ("fifo", "folder", "socket", "link", "link", "link", "device", "sparse", "gone", "denied", "another")
    )
    if kind == "gone":
        return given.without(name), f"{name} gone"
    if kind == "another":
        return _another(given, rng)
    data = b""
    if kind == "link":
        data = rng.choice((*_LEADS, name.rpartition("/")[2].encode()))
    elif kind == "sparse":
        data = b"%d" % rng.choice((1 << 20, 200 << 20, 8 << 30, 1 << 40))
    elif kind == "denied":
        data = given.nodes[name].data
    return given.with_node(name, Node(kind, data)), f"{name} a {kind} {data[:40]!r}"


def _another(given: Input, rng: random.Random) -> Tuple[Input, str]:
    """A file, or many, of a name that no capture gives."""
    top = given.target
    alike = [n for n in given.files() if n.endswith(".json")]
    data = given.nodes[rng.choice(alike)].data if alike else b"{}"
    if rng.random() < 0.15:
        many = {f"{top}/raw/proc/{pid}/process.json": Node("file", b"{}") for pid in range(1, 1500)}
        return given._replace(nodes={**many, **given.nodes}), "1500 processes"
    if rng.random() < 0.15:
        return given.with_node(f"{top}/raw/roots/1", Node("link", b"/")), "a root that is the machine's"
    name = f"{top}/{rng.choice(_NAMES)}"
    return given.with_file(name, data), f"also {name}"
