"""Secrets planted wherever a program has text: none of them is in anything that is shown, or made to be shown to others."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Dict, Iterator, Tuple

import pytest

import postmortem as api
from postmortem.report import FORMATS

from ..support.diagnosing import postmortem
from ..support.inwords import reason, remedy

pytestmark = pytest.mark.live

#: Place → the secret that is planted there. No two are alike, so that a leak tells where it comes from.
PLANTED = {
    place: f"5ecr3t{place}"
    for place in (
        "option",
        "pair",
        "url",
        "header",
        "child",
        "shell",
        "inline",
        "environment",
        "local",
        "attribute",
        "literal",
        "message",
        "task",
    )
}

PROGRAM = """
import asyncio, os, subprocess, sys, threading
class Session:
    def __init__(self, password): self.user, self.password = "ann", password
shell = subprocess.Popen(["sh", "-c", "PGPASSWORD=SHELL sleep 60; true"])
child = subprocess.Popen([sys.executable, "-c", "secret = 'INLINE'; input()", "--api-key", "CHILD"], stdin=subprocess.PIPE)
locks = [threading.Lock(), threading.Lock()]
both = threading.Barrier(2)
def swap(mine, other, token=os.environ["APP_TOKEN"]):
    session, option = Session(token.replace("environment", "attribute")), sys.argv[2]
    settings = {"Authorization": f"Bearer {token}", "dsn": sys.argv[4]}
    client_secret = "".join(["5ecr3t", "local"])
    with mine:
        both.wait()
        try:
            raise ValueError("password=" + "".join(["5ecr3t", "message"]))
        except ValueError as error:
            login(other, password="LITERAL")
def login(other, password):
    with other: pass
async def serve():
    worker = asyncio.ensure_future(asyncio.sleep(60))
    worker.set_name("upload token=TASK") if hasattr(worker, "set_name") else None
    for pair in (locks, locks[::-1]):
        threading.Thread(target=swap, args=pair, name="swap for " + sys.argv[2]).start()
    print("ready", flush=True)
    await worker
asyncio.run(serve())
"""


def planted(source: str) -> str:
    for place, secret in PLANTED.items():
        source = source.replace(place.upper(), secret)
    return source


@pytest.fixture(scope="module", params=[(), ("--locals",)], ids=["plain", "locals"])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, str, bool]:
    """The folder of a capture, what was said on stderr, and whether variables were asked for."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "program.py").write_text(planted(PROGRAM))
    words = (
        "--token",
        PLANTED["option"],
        f"API_KEY={PLANTED['pair']}",
        f"postgres://ann:{PLANTED['url']}@host/db",
        "-H",
        f"Authorization: Bearer {PLANTED['header']}",
    )
    secret = PLANTED["environment"]
    done = postmortem(
        "capture",
        "-t",
        "1.5",
        "--observe",
        "0.3",
        *request.param,
        "-o",
        "bundle",
        "--",
        sys.executable,
        "program.py",
        *words,
        cwd=folder,
        env={"APP_TOKEN": secret, "DB_PASSWORD": secret},
    )
    assert done.returncode == 124, done.stderr
    return folder, done.stderr, bool(request.param)


def files(folder: Path) -> Iterator[Tuple[str, str]]:
    """All that lies in a bundle outside of ``raw``."""
    for path in sorted(folder.iterdir()):
        assert path.name == "raw" or path.is_file()
        if path.is_file():
            yield path.name, path.read_text("utf-8")


def leaks(shown: Dict[str, str]) -> Dict[str, list[str]]:
    found = {name: [place for place, secret in PLANTED.items() if secret in text] for name, text in shown.items()}
    return {name: places for name, places in found.items() if places}


def test_they_are_there_to_be_found(captured: Tuple[Path, str, bool]) -> None:
    """In the raw facts and the core: else this file would prove nothing."""
    folder, _, _ = captured
    raw = b"".join(path.read_bytes() for path in (folder / "bundle" / "raw").rglob("*") if path.is_file())
    assert [place for place, secret in PLANTED.items() if secret.encode() not in raw] == []


def test_no_report_has_one(captured: Tuple[Path, str, bool]) -> None:
    """Not stderr, evidence, manifest, nor a report of any format, of the capture or made later; with variables or without."""
    folder, said, with_locals = captured
    shown = {"stderr": said, **dict(files(folder / "bundle"))}
    assert {"evidence.json", "manifest.json", "report.json", "report.txt"} <= set(shown)
    for asked in (False, True) if with_locals else ():  # what a capture with them left can be shown without them
        threads = [t for p in json.loads(shown["evidence.json"])["processes"] for t in p["threads"]]
        # without samples there is nothing to draw; a py-spy that comes too late is told as a gap
        drawn = () if any(t.get("samples") for t in threads) else ("speedscope", "collapsed")
        assert not drawn or any(gap["source"] == "py-spy" for gap in json.loads(shown["evidence.json"])["gaps"])
        rendered = {f"{asked}{f.suffix}": name for name, f in FORMATS.items() if f.suffix and name not in drawn}
        files_wanted = [word for name in rendered for word in ("--report", name)]
        done = postmortem("report", *(["--locals"] if asked else []), *files_wanted, "bundle", cwd=folder)
        assert done.returncode == 0, done.stderr
        shown[f"report {asked}"] = done.stdout + done.stderr
        report = api.analyze(folder / "bundle", locals=asked)
        for file, name in rendered.items():
            shown[file] = (folder / file).read_text("utf-8")
            shown[f"analyze {file}"] = report.render(name)
    assert leaks(shown) == {}
    for name in {"report.txt", "True.txt", "analyze True.txt", "False.txt", "analyze False.txt"} & shown.keys():
        assert "lock-order-deadlock" in shown[name]  # they tell what they are for
        assert ("client_secret = <redacted>" in shown[name]) == (with_locals and "False" not in name)
    assert "--token" in shown["manifest.json"] and "API_KEY=<redacted>" in shown["evidence.json"]


def test_a_stripped_bundle_may_be_shown_to_others(captured: Tuple[Path, str, bool]) -> None:
    """Neither it nor its archive holds memory, variables, or a secret; the diagnosis is the same, and what it lacks is said."""
    folder, _, with_locals = captured
    if not with_locals:
        return  # there is less to take out of it
    for output in ("bundle-stripped", "shown.zip"):
        done = postmortem("report", "bundle", "--strip", *(["-o", output] if ".zip" in output else []), cwd=folder)
        assert (done.returncode, Path(done.stdout.strip()).name, done.stderr) == (0, output, "")
        assert oct((folder / output).stat().st_mode)[-3:] == ("600" if ".zip" in output else "700")
    with zipfile.ZipFile(folder / "shown.zip") as archive:
        shown = {f"zip {name}": archive.read(name).decode() for name in archive.namelist() if not name.endswith("/")}
    shown.update(files(folder / "bundle-stripped"))
    names = {"manifest.json", "evidence.json", *(f"report{known.suffix}" for known in FORMATS.values() if known.kept)}
    assert set(shown) == {*names, *(f"zip shown/{name}" for name in names)}
    assert leaks(shown) == {}
    assert '"locals": [' not in shown["evidence.json"]
    whole = api.analyze(folder / "bundle")
    for output in ("bundle-stripped", "shown.zip"):
        bare = api.analyze(folder / output)
        assert (bare.verdict, bare.signature) == (whole.verdict, whole.signature)
        assert not [gap for gap in bare.gaps if "removed from this bundle" in reason(gap)]
        asked = api.analyze(folder / output, locals=True, sysroot="/")
        assert len([gap for gap in asked.gaps if "removed from this bundle" in reason(gap) and remedy(gap)]) == 2
    assert json.loads(shown["manifest.json"])["stripped"]["left_out"] == ["raw", "locals"]
    for output in ("bundle-stripped", "shown.zip"):
        done = postmortem("report", "bundle", "--strip", "-o", output, cwd=folder)
        assert done.returncode == 1 and "never overwritten" in done.stderr
