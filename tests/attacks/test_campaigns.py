"""A few rounds of the long attacks (``make attacks`` runs two hundred)."""

from __future__ import annotations

import os

import pytest

from . import campaign

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        os.geteuid() != 0 or not os.access(campaign.PYTHON, os.X_OK), reason="needs root and a system's Python"
    ),
]


@pytest.mark.parametrize("name", sorted(campaign.CAMPAIGNS))
def test_a_few_rounds(name: str) -> None:
    """No tree left, no bundle missing, nothing written outside, nothing of root's shown, no defect."""
    assert campaign.run(name, 4) == []
