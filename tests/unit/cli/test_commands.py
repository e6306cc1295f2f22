"""The command line: exit statuses, streams, formats; with a pipeline that is a fake of thirty lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

import postmortem
from postmortem import demo, publish, report
from postmortem.cli import commands
from postmortem.cores.journal import Where
from postmortem.errors import CaptureFailed, CoreGone, NotACore, UsageError
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis

from ...support.samples import hostile, sleeper, thrash


class FakePipeline:
    """Knows three targets; every other one is no core."""

    def __init__(self) -> None:
        self.asked: List[Tuple[str, Dict[str, object]]] = []

    def analyze_target(self, target: str, **options: object) -> Tuple[Evidence, Diagnosis]:
        self.asked.append((target, options))
        if target == "defect":
            raise RuntimeError("impossible\x1b[2J")
        return self.load_bundle(Path(target))

    def load_bundle(self, path: Path, *, with_locals: bool = False) -> Tuple[Evidence, Diagnosis]:
        known = {"thrash": thrash, "sleeper": sleeper, "hostile": hostile}
        if path.name not in known:
            raise NotACore(f"{path} is not a core file", "give a core, a bundle or coredumpctl:MATCH")
        return known[path.name]()


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> FakePipeline:
    fake = FakePipeline()
    monkeypatch.setattr(postmortem, "pipeline", fake, raising=False)
    monkeypatch.setitem(sys.modules, "postmortem.pipeline", fake)
    return fake


def test_analyze_writes_the_report_to_stdout_and_nothing_else(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """0, text by default, stderr silent when it is no terminal."""
    assert commands.main(["analyze", "thrash"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Verdict: gil-thrash, likely\n")
    assert said.err == ""


def test_one_target_that_cannot_be_read_is_one_sentence_and_status_1(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, no half report."""
    assert commands.main(["analyze", "junk"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "postmortem: junk is not a core file; give a core, a bundle or coredumpctl:MATCH\n"


def test_what_is_still_known_of_a_core_that_is_gone(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the sentence, line by line and harmless; the exit status is that of any other core that cannot be read."""

    def gone(target: str, **options: object) -> Tuple[Evidence, Diagnosis]:
        raise CoreGone("the core of PID 7 is gone", "look elsewhere", ["unit: web.service", "#0 \x1b[31mabort"])

    monkeypatch.setattr(pipeline, "analyze_target", gone)
    assert commands.main(["analyze", "coredumpctl:7"]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "postmortem: the core of PID 7 is gone; look elsewhere",
        "  unit: web.service",
        "  #0 \\x1b[31mabort",
    ]
    assert said.out == ""


def test_where_the_journal_is(pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """--since and -D reach the analysis of coredumpctl: targets; without one they are wrong usage."""
    assert commands.main(["analyze", "--since", "-2h", "-D", "/j", "coredumpctl:thrash"]) == 1
    assert pipeline.asked[0][1]["where"] == Where(Path("/j"), "-2h")
    assert commands.main(["analyze", "--since", "-2h", "thrash"]) == 2
    assert capsys.readouterr().err.endswith(
        "--since is for cores in the journal, but no target is one; use coredumpctl:last, for example\n"
    )


def test_wrong_usage_that_only_the_analysis_finds(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time that is none: status 2, and the other targets are analysed all the same."""

    def picky(target: str, **options: object) -> Tuple[Evidence, Diagnosis]:
        if target == "thrash":
            return thrash()
        raise UsageError("'soon' is no time")

    monkeypatch.setattr(pipeline, "analyze_target", picky)
    assert commands.main(["analyze", "coredumpctl:last", "thrash"]) == 2
    assert "=== thrash ===" in capsys.readouterr().out


def test_one_failing_target_does_not_stop_the_others(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three targets, the middle one broken: two reports, status 1, the sentence names the broken one."""
    assert commands.main(["analyze", "thrash", "junk", "sleeper"]) == 1
    said = capsys.readouterr()
    assert [line for line in said.out.splitlines() if line.startswith("===")] == ["=== thrash ===", "=== sleeper ==="]
    assert said.err.startswith("postmortem: junk: junk is not a core file")


def test_a_defect_in_one_target_does_not_stop_the_others(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A core is hostile input; what it breaks is said in one harmless line."""
    monkeypatch.delenv("POSTMORTEM_DEBUG", raising=False)
    assert commands.main(["analyze", "defect", "sleeper"]) == 1
    said = capsys.readouterr()
    assert "=== sleeper ===" in said.out
    assert "RuntimeError: impossible\\x1b[2J; this is a defect" in said.err
    assert "Traceback" not in said.err


def test_json_of_one_target_is_the_report(pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """One target, one object."""
    assert commands.main(["analyze", "-f", "json", "thrash"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["verdict"]) == ("postmortem.report/1", "gil-thrash")


@pytest.mark.parametrize(("targets", "number"), [(["thrash", "sleeper"], 2), (["thrash", "junk"], 1), (["a", "b"], 0)])
def test_json_of_several_targets_is_a_list(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], targets: List[str], number: int
) -> None:
    """Also when only some could be read: the shape follows from the command line, not from luck."""
    commands.main(["analyze", "-f", "json", *targets])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "postmortem.report/1"
    assert len(document["reports"]) == number


def test_report_files_get_the_format_of_their_suffix(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`--report` can be repeated; stdout still has the text."""
    names = [tmp_path / "a.json", tmp_path / "b.txt"]
    assert (
        commands.main(["analyze", "thrash", "--report", str(names[0]), "--report", str(names[1]), "--color", "always"])
        == 0
    )
    assert json.loads(names[0].read_text("utf-8"))["verdict"] == "gil-thrash"
    assert names[1].read_text("utf-8").startswith("Verdict: gil-thrash")
    assert "\x1b[" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze"],
        ["analyze", "--nonsense", "thrash"],
        ["analyze", "-f", "pdf", "thrash"],
        ["analyze", "--report", "out.pdf", "thrash"],
        ["analyze", "--color", "perhaps", "thrash"],
        ["nonsense"],
        ["report"],
    ],
)
def test_wrong_usage_is_2_and_nothing_is_analysed(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], arguments: List[str]
) -> None:
    """The command line is checked before any work."""
    assert commands.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err
    assert "Traceback" not in said.err
    assert pipeline.asked == []


def test_formats_that_do_not_exist_are_refused_with_those_there_are(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence says what would work."""
    commands.main(["analyze", "-f", "pdf", "thrash"])
    assert capsys.readouterr().err == f"postmortem: no format 'pdf'; there are: {', '.join(report.FORMATS)}\n"


@pytest.mark.parametrize("command", ["analyze", "report", "capture"])
def test_the_help_lists_every_format(pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Their names under `-f`, their suffixes under `--report`."""
    commands.main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for known in report.FORMATS.values():
        assert re.search(rf"\b{known.name}\b", said)
        assert known.suffix in said


def test_the_schema_is_printed_without_a_bundle(pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """`postmortem report --schema`: whoever reads reports by program has it where postmortem is installed."""
    assert commands.main(["report", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "postmortem.report/1"


def test_a_format_without_anything_to_show_says_so(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A core has no samples to draw: a sentence and status 1, no empty picture; the other reports are written."""
    empty, full = tmp_path / "a.speedscope.json", tmp_path / "a.md"
    assert commands.main(["analyze", "sleeper", "--report", str(empty), "--report", str(full)]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("Verdict: none")
    assert "is not written: there are no samples to draw: nothing was watched over time" in said.err
    assert not empty.exists() and full.read_text("utf-8").startswith("## postmortem: no verdict")
    assert commands.main(["analyze", "-f", "collapsed", "sleeper"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_exe_and_sysroot_reach_the_analysis(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As paths; None when they are not given."""
    commands.main(["analyze", "thrash", "--exe", "/opt/py", "--sysroot", str(tmp_path)])
    commands.main(["analyze", "thrash"])
    (_, first), (_, second) = pipeline.asked
    assert (first["exe"], first["sysroot"]) == (Path("/opt/py"), tmp_path)
    assert (second["exe"], second["sysroot"]) == (None, None)


def test_report_renders_a_bundle_again(pipeline: FakePipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """In any format, with analyze's statuses."""
    assert commands.main(["report", "thrash", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "gil-thrash"
    assert commands.main(["report", "junk"]) == 1


def test_a_report_file_that_cannot_be_written_is_said(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The report on stdout is there all the same."""
    reports = [str(tmp_path / "no" / "x.txt"), str(tmp_path / "there.txt"), str(tmp_path / "neither" / "x.json")]
    assert commands.main(["analyze", "sleeper", *(word for name in reports for word in ("--report", name))]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("Verdict: none")
    assert f"'{reports[0]}' could not be written" in said.err
    assert f"'{reports[2]}' could not be written" in said.err
    assert (tmp_path / "there.txt").read_text().startswith("Verdict: none")


@pytest.mark.parametrize(
    ("choice", "variables", "colored"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("never", {}, False),
        ("always", {"NO_COLOR": "1"}, True),
    ],
)
def test_colour_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, choice: str, variables: Dict[str, str], colored: bool
) -> None:
    """NO_COLOR and a dumb terminal turn it off, an explicit choice wins."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert publish.wants_color(_Terminal(), choice) is colored  # type: ignore[arg-type] # isatty() is all that is asked


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_a_stream_that_cannot_say_everything_gets_escapes(pipeline: FakePipeline, tmp_path: Path) -> None:
    """LC_ALL=POSIX in a CI image is no reason to fail on the sign ×."""
    path = tmp_path / "out"
    with open(path, "w", encoding="ascii") as stream:
        publish.emit(publish.plan("text", ()), [("t", *thrash())], stream, many=False)
    assert b"\\xd759 threads" in path.read_bytes()


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Both give 0."""
    assert commands.main(["--version"]) == 0
    assert postmortem.__version__ in capsys.readouterr().out
    assert commands.main(["analyze", "--help"]) == 0
    assert "--sysroot" in capsys.readouterr().out


def test_capture_help_lists_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    """It comes from the table that the fast path parses by."""
    assert commands.main(["capture", "--help"]) == 0
    said = capsys.readouterr().out
    for option in ("--timeout", "--output", "--kill-after", "--signal", "--foreground", "--pid"):
        assert option in said


def test_patterns_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has a line for each pattern; an id gives its whole text."""
    assert commands.main(["patterns"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("gil-thrash ") for line in lines)
    assert commands.main(["patterns", "gil-thrash"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_an_unknown_pattern_is_wrong_usage_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest id is offered."""
    assert commands.main(["patterns", "gil-trash"]) == 2
    assert "did you mean gil-thrash" in capsys.readouterr().err


def test_demo_shows_the_diagnosis_and_where_the_bundle_lies(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0; the report and the path on stdout, progress on stderr."""
    monkeypatch.setattr(demo, "run", lambda name, progress: progress("running") or Path("/kept/thrash"))
    assert commands.main(["demo"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Verdict: gil-thrash")
    assert said.out.endswith("Verdict: gil-thrash. The bundle is kept in /kept/thrash\n")
    assert said.err == "demo: running\n"


def test_a_demo_that_fails_is_one_sentence(
    pipeline: FakePipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status is the error's."""

    def fail(name: object, progress: object) -> Path:
        raise CaptureFailed("capture ended with status 125: no space left", "see the log")

    monkeypatch.setattr(demo, "run", fail)
    assert commands.main(["demo"]) == 125
    assert capsys.readouterr().err == "postmortem: capture ended with status 125: no space left; see the log\n"


def test_output_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`postmortem … | head -0` gets 141 as other programs do, and no traceback."""
    code = "import sys; from postmortem.cli import commands as cli; sys.exit(cli.main(['--help']))"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(60) == 141
