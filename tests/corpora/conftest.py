"""``--update`` writes ``corpora/confusion.md`` anew; without it the file is compared."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write corpora/confusion.md anew")


@pytest.fixture(scope="session")
def update(request: pytest.FixtureRequest) -> bool:
    # The option is unknown when pytest starts above this folder.
    return bool(request.config.getoption("--update", default=False)) or os.environ.get("UPDATE") == "1"
