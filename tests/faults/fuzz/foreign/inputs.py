"""A foreign input: files, directories, links, FIFOs below one folder, and what is analysed of them."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import stat
import zlib
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

#: What may stand in place of a file.
KINDS = ("file", "folder", "fifo", "socket", "link", "device", "sparse", "denied", "copy")


class Node(NamedTuple):
    """``data``: of a file its bytes; of a link, or a copy of a local file, the path; of a sparse file its size in digits."""

    kind: str
    data: bytes = b""


class Input(NamedTuple):
    """``target`` is what the commands are given: a name among ``nodes``, or ``coredumpctl:…`` with the journal's text in
    ``nodes["journal"]`` and, of a core kept there, ``nodes["journal-core"]``."""

    kind: str
    target: str
    nodes: Dict[str, Node]
    said: List[str]  # what was done to it

    def with_file(self, name: str, data: bytes) -> Input:
        return self.with_node(name, Node("file", data))

    def with_node(self, name: str, node: Node) -> Input:
        return self._replace(nodes={**self.nodes, name: node})

    def without(self, name: str) -> Input:
        return self._replace(nodes={known: node for known, node in self.nodes.items() if known != name})

    def files(self) -> List[str]:
        return sorted(name for name, node in self.nodes.items() if node.kind == "file")

    def to_json(self) -> Dict[str, Any]:
        packed = {n: [node.kind, base64.b64encode(zlib.compress(node.data)).decode()] for n, node in self.nodes.items()}
        return {"kind": self.kind, "target": self.target, "said": self.said, "nodes": packed}


def from_json(found: Dict[str, Any]) -> Input:
    nodes = {n: Node(kind, zlib.decompress(base64.b64decode(data))) for n, (kind, data) in found["nodes"].items()}
    return Input(found["kind"], found["target"], nodes, found["said"])


def kept(path: Path) -> Input:
    """A case that was written down."""
    return from_json(json.loads(path.read_text()))


def lay_out(given: Input, folder: Path) -> None:
    """Makes the files. Where a name leads through what is no directory, it is left out."""
    for name in sorted(given.nodes):
        path = folder / name
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(path, given.nodes[name])


def _make(path: Path, node: Node) -> None:
    if node.kind == "folder":
        path.mkdir()
    elif node.kind == "fifo":
        os.mkfifo(str(path))
    elif node.kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(".", os.O_RDONLY)
            try:  # the path of a socket has 107 bytes at most
                os.chdir(str(path.parent))
                listener.bind(path.name[:100])
            finally:
                os.fchdir(here)
                os.close(here)
    elif node.kind == "link":
        path.symlink_to(os.fsdecode(node.data))
    elif node.kind == "device":
        try:
            os.mknod(str(path), stat.S_IFCHR | 0o666, os.makedev(1, 5))  # another /dev/zero
        except PermissionError:
            path.symlink_to("/dev/zero")
    elif node.kind == "sparse":
        with path.open("wb") as stream:
            stream.truncate(int(node.data))
    elif node.kind == "copy":
        os.link(os.fsdecode(node.data), str(path))
    else:
        path.write_bytes(node.data)
        if node.kind == "denied":
            path.chmod(0)
