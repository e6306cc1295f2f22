"""Fetches the libraries that the HTML report carries, through npm, at the versions that stand here.

    python -m tools.vendor            # writes postmortem/report/assets/vendor/ anew
    python -m tools.vendor --check    # writes nothing; says what differs from npm

The report works offline, so it brings them along. ``manifest.json`` beside them has version, licence and sha256 of each file;
a test compares the files with it (tests/unit/report/html/test_assets.py). Needs npm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

FOLDER = Path(__file__).resolve().parents[1] / "postmortem" / "report" / "assets" / "vendor"


class Library(NamedTuple):
    """``files``: path inside the npm package → name in the folder, the script first, then its licence's text."""

    name: str
    version: str
    license: str
    files: Tuple[Tuple[str, str], ...]


#: In the order in which a page runs them: the flame graph finds d3 as a global.
LIBRARIES = (
    Library("d3", "7.9.0", "ISC", (("dist/d3.min.js", "d3.min.js"), ("LICENSE", "d3.LICENSE.txt"))),
    Library(
        "@dagrejs/dagre", "3.1.3", "MIT", (("dist/dagre.min.js", "dagre.min.js"), ("LICENSE", "dagre.LICENSE.txt"))
    ),
    Library(
        "d3-flame-graph", "5.0.0", "Apache-2.0",
        (("dist/d3-flamegraph.umd.min.js", "d3-flamegraph.min.js"), ("LICENSE", "d3-flamegraph.LICENSE.txt")),
    ),
)  # fmt: skip


def fetched(library: Library, folder: Path) -> Dict[str, bytes]:
    """Name in the folder → content, as npm has it. Raises subprocess.CalledProcessError when npm fails."""
    wanted = f"{library.name}@{library.version}"
    done = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(folder), wanted],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    with tarfile.open(folder / done.stdout.split()[-1]) as package:
        found = {}
        for path, name in library.files:
            member = package.extractfile(f"package/{path}")
            assert member is not None, f"{wanted} has no {path}"
            found[name] = _own_lines(member.read())
    return found


def _own_lines(data: bytes) -> bytes:
    """Without the comment that names a source map: the map is not carried, and a browser would ask for it."""
    lines = [line for line in data.splitlines(keepends=True) if not line.startswith(b"//# sourceMappingURL=")]
    return b"".join(lines)


def entry(library: Library, content: Dict[str, bytes]) -> Dict[str, object]:
    return {
        "name": library.name,
        "version": library.version,
        "license": library.license,
        "files": {name: hashlib.sha256(content[name]).hexdigest() for _path, name in library.files},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    check = parser.parse_args().check
    content: Dict[str, bytes] = {}
    manifest = []
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            found = fetched(library, Path(folder))
            content.update(found)
            manifest.append(entry(library, found))
    content["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    differing = [n for n, d in content.items() if not (FOLDER / n).is_file() or (FOLDER / n).read_bytes() != d]
    if not check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in differing:
            (FOLDER / name).write_bytes(content[name])
    print(f"{'differ' if check else 'written'}: {', '.join(differing) or 'none'}")
    return int(check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
