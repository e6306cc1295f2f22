"""What CI runners obey in the log of a job, and text made so that none of them does.

A diagnosed program chooses names of files, functions, threads and arguments, and the lines of its sources. Printed in a job's
log some of them are orders: set a variable, fail the step, add a path, upload a file. A backslash goes into each, which readers
see and can take out again.

Obeyed anywhere in a line, in capitals as well:

- ``##vso[area.action]`` and ``##[command]``: Azure Pipelines,
  learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands. GitHub's runner looks for its older form
  ``##[command]`` anywhere, too (actions/runner, Runner.Common/ActionCommand.cs, TryParse).
- ``##teamcity[message]``: TeamCity, jetbrains.com/help/teamcity/service-messages.html.
- ``section_start:TIME:NAME`` and ``section_end:``: GitLab, docs.gitlab.com/ci/jobs/job_logs ("Create custom collapsible
  sections"). GitLab wants a carriage return and an escape sequence behind them, which are never printed either.
- ``travis_fold:start:NAME``, ``travis_time:``: Travis CI, travis-ci/travis-build, lib/travis/build/bash/travis_fold.bash.

Obeyed where a line begins with them:

- ``::command::``: GitHub Actions, docs.github.com/actions/reference/workflow-commands-for-github-actions; space before it is
  trimmed (ActionCommand.cs, TryParseV2). Forgejo's and Gitea's runners do alike.
- ``---``, ``+++``, ``~~~`` and ``^^^ +++``: Buildkite, buildkite.com/docs/pipelines/managing-log-output.

Terminal sequences are not this module's: nothing that is printed has a control character (report.escape, narration).
"""

from __future__ import annotations

import re

#: Each matches the one character behind which (``#``) or before which (``_``) the backslash goes.
ANYWHERE = re.compile(r"(?i:#(?=#(?:vso|teamcity)?\[)|(?<=section)_(?=(?:start|end):)|(?<=travis)_(?=(?:fold|time):))")
_BEGINNING = re.compile(r"^([^\S\n]*)(?=::)|^(?=(?:-{3}|\+{3}|~{3}|\^{3})(?:\s|$))", re.M)


def defused(text: str) -> str:
    """Text of any number of lines of which none is obeyed. Text that has been through it comes out as it is."""
    if "::" in text or "---" in text or "+++" in text or "~~~" in text or "^^^" in text:
        text = _BEGINNING.sub(lambda found: f"{found.group(1) or ''}\\", text)
    return inside(text)


def may_obey(text: str) -> bool:
    """Is there anything at all in a text that ANYWHERE may match? Costs a fraction of the search."""
    if "##" in text:
        return True
    low = text.lower() if "_" in text else ""
    return "section_" in low or "travis_" in low


def inside(text: str) -> str:
    """The same for text whose lines begin as they are meant to."""
    if may_obey(text):
        text = ANYWHERE.sub(lambda found: "#\\" if found.group() == "#" else "\\_", text)
    return text
