"""The commands: each parses its arguments, calls one function and selects a renderer; the work is done elsewhere.

`capture` is handled by ``__main__`` before this module is imported; here it only has its help.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

import click

from .. import __version__, errors, publish
from ..progress import Progress
from ..report.escape import clean
from .invocation import invoke
from .options import COLOR, EXE, FORMAT, JOURNAL, LOCALS, OUTPUT, REPORTS, SCHEMA, STRIP, SYSROOT
from .targets import complain, each

CaptureWords = Callable[[List[str]], int]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="postmortem")
def commands() -> None:
    """Says what a hung or crashed Python program waits for, whose fault that is, and which line to change."""


@commands.command(
    "capture",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def capture(serve: Optional[CaptureWords], arguments: Tuple[str, ...]) -> int:
    """Run a command; when it does not end in time, say why.

    The command keeps its standard streams, terminal, working directory and environment. If it ends in time, postmortem
    prints nothing and exits with its status. Otherwise the process tree is observed, copied into a bundle, diagnosed and
    ended.
    """
    from ..capture.options import help_text  # noqa: PLC0415

    if not arguments or arguments[0] in ("-h", "--help") or serve is None:
        click.echo(help_text())
        return 0
    return serve(list(arguments))


@commands.command("analyze")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@FORMAT
@REPORTS
@EXE
@SYSROOT
@LOCALS
@JOURNAL
@COLOR
def analyze(
    targets: Tuple[str, ...],
    format_: str,
    reports: Tuple[str, ...],
    exe: Optional[Path],
    sysroot: Optional[Path],
    with_locals: bool,
    color: str,
    **journal: Any,
) -> int:
    """Diagnose core files, bundles, coredumpctl:MATCH, and crash reports of apport and abrt."""
    from .. import pipeline  # noqa: PLC0415 - readers and patterns are not needed to print help
    from ..cores.journal import where  # noqa: PLC0415

    journal = {"where": where(targets, **journal)}
    with Progress() as progress:
        return each(
            targets,
            lambda target: pipeline.analyze_target(
                target, exe=exe, sysroot=sysroot, progress=progress, with_locals=with_locals, **journal
            ),
            publish.plan(format_, reports),
            color,
            progress,
        )


@commands.command("report")
@click.argument("bundle")
@SCHEMA
@FORMAT
@REPORTS
@STRIP
@OUTPUT
@LOCALS
@COLOR
def report(
    bundle: str,
    format_: str,
    reports: Tuple[str, ...],
    strip: bool,
    output: Optional[Path],
    with_locals: bool,
    color: str,
) -> int:
    """Render the diagnosis of a bundle again, in any format, or make a copy of the bundle to share."""
    if strip:
        return _strip(Path(bundle), output, with_locals)
    if output is not None:
        raise errors.UsageError("-o works only with --strip", "use --report FILE to write a report to a file")
    from .. import pipeline  # noqa: PLC0415

    with Progress() as progress:
        return each(
            (bundle,),
            lambda target: pipeline.load_bundle(Path(target), with_locals=with_locals),
            publish.plan(format_, reports),
            color,
            progress,
        )


def _strip(bundle: Path, output: Optional[Path], with_locals: bool) -> int:
    """Write a bundle without secrets, and print its path; raise UsageError if a report was requested too."""
    for name in ("format_", "reports"):
        if click.get_current_context().get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise errors.UsageError("--strip writes a bundle and no report", "run `postmortem report` on that bundle")
    from ..strip import strip  # noqa: PLC0415

    click.echo(clean(str(strip(bundle, output, with_locals=with_locals))))
    return 0


@commands.command("patterns")
@click.argument("id_", metavar="[ID]", required=False)
def patterns(id_: Optional[str]) -> None:
    """List the patterns, or explain one."""
    from . import pages  # noqa: PLC0415

    width = publish.columns(sys.stdout)
    click.echo(pages.listing(width) if id_ is None else pages.explained(id_, min(width, 100)), nl=False)


@commands.command("demo")
@click.argument("name", required=False)
@click.option("--list", "list_", is_flag=True, help="List the demos.")
@COLOR
def demo(name: Optional[str], list_: bool, color: str) -> None:
    """Run an example that hangs, under capture, and show its diagnosis."""
    from .. import demo as demos  # noqa: PLC0415

    if list_:
        for case in demos.cases():
            click.echo(f"{case.name}  {case.title}")
        return
    bundle = demos.run(name, lambda text: click.echo(f"demo: {text}", err=True))
    from .. import pipeline  # noqa: PLC0415

    evidence, diagnosis = pipeline.load_bundle(bundle)
    publish.emit(publish.plan("text", ()), [(str(bundle), evidence, diagnosis)], sys.stdout, color=color, many=False)
    click.echo(f"\nVerdict: {diagnosis.verdict or 'none'}. The bundle is kept in {clean(str(bundle))}")


@commands.command(
    "debug",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    options_metavar="[OPTIONS]",
)
@click.argument("arguments", metavar="TARGET [GDB-ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
@EXE
@SYSROOT
@click.option("--pid", type=int, help="The process of a bundle whose core to open; default: the first.")
@click.option("--print-script", is_flag=True, help="Print the path of the script to `source` in any gdb.")
@click.pass_context
def debug(
    context: click.Context,
    arguments: Tuple[str, ...],
    exe: Optional[Path],
    sysroot: Optional[Path],
    pid: Optional[int],
    print_script: bool,
) -> int:
    """Open gdb on a core or bundle, with commands that know Python.

    They are pm-why, pm-threads, pm-bt, pm-locals, pm-locks, pm-tasks, pm-gil and pm-objects.

    Other arguments after TARGET go to gdb: `debug core -ex pm-threads --batch`.
    """
    from .. import debug as debugging  # noqa: PLC0415

    if print_script:
        click.echo(str(debugging.script()))
        return 0
    if arguments[:1] == ("-h",):
        click.echo(context.get_help())
        return 0
    with Progress() as progress:
        return debugging.run(arguments, exe=exe, sysroot=sysroot, pid=pid, progress=progress, say=complain)


@commands.command("completion", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
def completion(shell: str, words: Tuple[str, ...]) -> None:
    """Print the script for a shell's start-up file that completes commands and options."""
    from . import completion as completions  # noqa: PLC0415

    click.echo(completions.answer(commands, words) if words else completions.script(shell), nl=bool(words))


@commands.command("doctor")
def doctor() -> int:
    """Say what this machine allows, and how to fix what is missing."""
    from .. import doctor as examination  # noqa: PLC0415

    checks = examination.checks()
    for check in checks:
        click.echo(f"{check.mark:>4}  {check.name}: {clean(check.found)}")
        if check.remedy:
            click.echo(f"      {check.remedy}")
    return 1 if any(check.needed and check.ok is False for check in checks) else 0


def main(argv: List[str], capture_words: Optional[CaptureWords] = None) -> int:
    """Run one command; return its exit status. Every foreseeable error is one sentence on stderr.

    ``argv``: the words after the program's name. ``capture_words``: the function that handles the words after ``capture``;
    see ``__main__``.
    """
    return invoke(commands, argv, capture_words)
