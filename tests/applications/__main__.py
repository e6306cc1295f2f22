"""``python -m tests.applications``: runs real applications, captures them, and writes docs/applications.md.

Ends with status 1 if fewer than nine of ten are right.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path
from typing import List, Optional

from tests.interpreters.steps import Unavailable

from . import page, trying, venvs
from .judging import Row, judge
from .specs import BY_ID, Application, State

SHARE_RIGHT = 0.9


def one(application: Application, state: State, keep: Path, replay: bool) -> Row:
    """Try one state, or judge its kept bundle anew."""
    row = Row(application.id, state.name, "", "", datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    work = keep / f"{application.id}-{state.name}.work"
    bundle = keep / f"{application.id}-{state.name}"
    try:
        folder = venvs.environment(application)
        python = venvs.interpreter_version(folder)
        row = Row(application.id, state.name, venvs.version(application, folder), python, row.tried)
        if replay:
            report = trying.again(bundle)
        else:
            trying.forget(bundle)
            trying.forget(work)
            report = trying.report(application, state, folder, work, bundle)
        return judge(application, state, report, work, row)
    except (Unavailable, OSError) as error:
        return Row(**{**row.to_json(), "problem": str(error)})


def say(row: Row) -> None:
    """Return a line of progress."""
    verdict = "right" if row.right else f"WRONG ({row.problem})"
    print(f"applications: {row.application} {row.state}: {page.said(row)}: {verdict}", file=sys.stderr, flush=True)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.applications", description=__doc__)
    parser.add_argument(
        "id", nargs="*", metavar="ID[:STATE]", help=f"only these of {', '.join(BY_ID)}; all without any"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep bundles and logs there")
    parser.add_argument("--replay", action="store_true", help="judge the bundles in --keep anew; write nothing")
    chosen = parser.parse_args(arguments)
    wanted = [name.partition(":")[::2] for name in chosen.id or BY_ID]
    unknown = sorted({id for id, _ in wanted} - set(BY_ID))
    if unknown:
        parser.error(f"no such application: {', '.join(unknown)}")
    if chosen.replay and chosen.keep is None:
        parser.error("--replay needs --keep")
    rows: List[Row] = []
    with tempfile.TemporaryDirectory(prefix="applications-") as scratch:
        keep = (chosen.keep or Path(scratch)).absolute()
        keep.mkdir(parents=True, exist_ok=True)
        for id, only in wanted:
            for state in BY_ID[id].states:
                if only not in ("", state.name):
                    continue
                rows.append(one(BY_ID[id], state, keep, chosen.replay))
                say(rows[-1])
                if chosen.keep is None:
                    trying.forget(keep / f"{id}-{state.name}")
    right = sum(row.right for row in rows)
    print(f"applications: {right} of {len(rows)} are right", file=sys.stderr)
    if not chosen.replay:
        page.write(page.merged(page.kept(), rows))
    return 0 if right >= SHARE_RIGHT * len(rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("applications: interrupted")
