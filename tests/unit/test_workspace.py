"""Where a CI server has its checkout, as its environment says."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.workspace import checkout


@pytest.mark.parametrize(
    ("environment", "directory", "found"),
    [
        ({"GITHUB_WORKSPACE": "/w/repo"}, "/w/repo/backend", "/w/repo"),
        ({"CI_PROJECT_DIR": "/w/repo/"}, "/w/repo", "/w/repo"),
        ({"GITHUB_WORKSPACE": "/w/repo"}, "/w/repository", None),
        ({"GITHUB_WORKSPACE": "/elsewhere", "WORKSPACE": "/w"}, "/w/repo", "/w"),
        ({"WORKSPACE": "repo"}, "/w/repo", None),
        ({"WORKSPACE": "/"}, "/w/repo", None),
        ({"WORKSPACE": "/w"}, None, None),
        ({}, "/w/repo", None),
    ],
)
def test_the_checkout_is_above_the_working_directory(
    environment: Dict[str, str], directory: str, found: Optional[str]
) -> None:
    """A variable that names another place is somebody else's; without one it is unknown."""
    assert checkout(environment, directory) == found
