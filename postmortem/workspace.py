"""The folder in which a CI server has checked out the project: annotations name files relative to it.

The folder itself is not read: a share that does not respond would block us.
"""

from __future__ import annotations

from typing import Mapping, Optional

#: The servers' predefined variables, from their documentation: GitHub and Forgejo, GitLab, Azure, Bitbucket, Travis,
#: Buildkite, Drone and Woodpecker, Jenkins.
VARIABLES = (
    "GITHUB_WORKSPACE", "CI_PROJECT_DIR", "BUILD_SOURCESDIRECTORY", "BITBUCKET_CLONE_DIR", "TRAVIS_BUILD_DIR",
    "BUILDKITE_BUILD_CHECKOUT_PATH", "DRONE_WORKSPACE", "CI_WORKSPACE", "WORKSPACE",
)  # fmt: skip


def checkout(environment: Mapping[str, str], directory: Optional[str]) -> Optional[str]:
    """Return the folder in the environment that contains the working directory, or None."""
    for name in VARIABLES:
        folder = environment.get(name, "").rstrip("/")
        if folder.startswith("/") and directory is not None and f"{directory}/".startswith(f"{folder}/"):
            return folder
    return None
