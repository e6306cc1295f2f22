"""Commands that CI runners recognise in a job's log, and text escaped so that none is.

A diagnosed program chooses names of files, functions, threads and arguments, and the lines of its sources. In a job's
log some texts are commands: set a variable, fail the step, add a path, upload a file. A backslash is inserted into
each, which readers see and can remove.

Recognised anywhere in a line, regardless of case:

- ``##vso[area.action]`` and ``##[command]``: Azure Pipelines,
  learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands. GitHub's runner looks for its older form
  ``##[command]`` anywhere, too (actions/runner, Runner.Common/ActionCommand.cs, TryParse).
- ``##teamcity[message]``: TeamCity, jetbrains.com/help/teamcity/service-messages.html.
- ``section_start:TIME:NAME`` and ``section_end:``: GitLab, docs.gitlab.com/ci/jobs/job_logs ("Create custom collapsible
  sections"). GitLab requires a carriage return and an escape sequence behind them, which are never printed either.
- ``travis_fold:start:NAME``, ``travis_time:``: Travis CI, travis-ci/travis-build,
  lib/travis/build/bash/travis_fold.bash.

Recognised at the beginning of a line:

- ``::command::``: GitHub Actions, docs.github.com/actions/reference/workflow-commands-for-github-actions; space before
  it is trimmed (ActionCommand.cs, TryParseV2). Forgejo's and Gitea's runners do the same.
- ``---``, ``+++``, ``~~~`` and ``^^^ +++``: Buildkite, buildkite.com/docs/pipelines/managing-log-output.

Terminal sequences are handled elsewhere: nothing that is printed has a control character (report.escape, narration).
"""

from __future__ import annotations

import re

#: Matches the one character after which (``#``) or before which (``_``) the backslash is inserted.
ANYWHERE = re.compile(r"(?i:#(?=#(?:vso|teamcity)?\[)|(?<=section)_(?=(?:start|end):)|(?<=travis)_(?=(?:fold|time):))")
_BEGINNING = re.compile(r"^([^\S\n]*)(?=::)|^(?=(?:-{3}|\+{3}|~{3}|\^{3})(?:\s|$))", re.M)


def defused(text: str) -> str:
    """Escape all commands in a text of any number of lines. Idempotent."""
    if "::" in text or "---" in text or "+++" in text or "~~~" in text or "^^^" in text:
        text = _BEGINNING.sub(lambda found: f"{found.group(1) or ''}\\", text)
    return inside(text)


def may_obey(text: str) -> bool:
    """Return whether ANYWHERE may match in a text; costs a fraction of the search."""
    if "##" in text:
        return True
    low = text.lower() if "_" in text else ""
    return "section_" in low or "travis_" in low


def inside(text: str) -> str:
    """Escape only commands recognised anywhere in a line, in text whose line beginnings are our own."""
    if may_obey(text):
        text = ANYWHERE.sub(lambda found: "#\\" if found.group() == "#" else "\\_", text)
    return text
