"""Where a CI server has checked out what it builds: annotations name files relative to that folder.

Nothing of it is looked at: a share that does not answer would keep whoever asks.
"""

from __future__ import annotations

from typing import Mapping, Optional

#: Each server's own name for it, as its documentation of predefined variables has it (GitHub and Forgejo, GitLab, Azure,
#: Bitbucket, Travis, Buildkite, Drone and Woodpecker, Jenkins).
VARIABLES = (
    "GITHUB_WORKSPACE", "CI_PROJECT_DIR", "BUILD_SOURCESDIRECTORY", "BITBUCKET_CLONE_DIR", "TRAVIS_BUILD_DIR",
    "BUILDKITE_BUILD_CHECKOUT_PATH", "DRONE_WORKSPACE", "CI_WORKSPACE", "WORKSPACE",
)  # fmt: skip


def checkout(environment: Mapping[str, str], directory: Optional[str]) -> Optional[str]:
    """The folder above the working directory that the environment names; None when none is, or it lies elsewhere."""
    for name in VARIABLES:
        folder = environment.get(name, "").rstrip("/")
        if folder.startswith("/") and directory is not None and f"{directory}/".startswith(f"{folder}/"):
            return folder
    return None
