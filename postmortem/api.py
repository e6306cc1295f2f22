"""The API of ``import postmortem``: :func:`analyze` and its result, :class:`Report`.

The results are the command line's own: ``postmortem.evidence`` is what was read, ``postmortem.findings`` what was
concluded; both are immutable. Nothing is printed. Every foreseeable error is one of ``postmortem.errors``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from . import report as renderers
from .errors import UsageError
from .evidence import Evidence, Gap, Process
from .findings import Diagnosis, Finding
from .report.phrases.gaps import in_words

__all__ = ["Report", "analyze"]

PathLike = Union[str, "os.PathLike[str]"]


class Report(NamedTuple):
    """A target's diagnosis, with its evidence."""

    target: str  # as passed to analyze
    evidence: Evidence
    diagnosis: Diagnosis

    @property
    def verdict(self) -> Optional[str]:
        """Id of the leading finding's pattern ("lock-order-deadlock"); None: nothing known was recognised."""
        return self.diagnosis.verdict

    @property
    def signature(self) -> str:
        """Short id of the hang, the same on another day or machine."""
        return self.diagnosis.signature

    @property
    def findings(self) -> Tuple[Finding, ...]:
        """The findings, the most telling first."""
        return self.diagnosis.findings

    @property
    def processes(self) -> Tuple[Process, ...]:
        """The processes that were read."""
        return self.evidence.processes

    @property
    def gaps(self) -> Tuple[Gap, ...]:
        """What could not be read, why, and how to get it next time."""
        return tuple(map(in_words, self.evidence.gaps))

    def render(self, format: str = "text", *, color: bool = False, width: int = 80) -> str:
        """Return the report as printed by ``postmortem analyze -f FORMAT``.

        ``color`` and ``width`` (columns) apply to text. Raises UsageError for an unknown format.
        """
        try:
            known = renderers.format_named(format)
        except ValueError as exc:
            raise UsageError(str(exc)) from None
        return known.render(self.evidence, self.diagnosis, color, width)

    def as_json(self) -> Dict[str, Any]:
        """Return ``report.json`` as a dict, in the form of ``report.schema.json``."""
        loaded: Dict[str, Any] = json.loads(self.render("json"))
        return loaded


def analyze(
    target: PathLike, *, exe: Optional[PathLike] = None, sysroot: Optional[PathLike] = None, locals: bool = False
) -> Report:
    """Diagnose a core file (plain or compressed), or a bundle of ``postmortem capture`` (a directory or ``.zip``).

    - ``exe``, ``sysroot``: the program that left the core, and a folder with the libraries of its machine, when they
      have moved
    - ``locals``: read variables and messages of exceptions too; what looks like a secret is masked

    Takes seconds for a large core; gdb runs as a separate process. Raises PostmortemError: TargetNotFound, NotACore,
    NotABundle, UsageError, …
    """
    from . import pipeline  # noqa: PLC0415 - readers are not needed for a Report that was pickled

    name = os.fspath(target)
    found, diagnosis = pipeline.analyze_target(
        name,
        exe=None if exe is None else Path(exe),
        sysroot=None if sysroot is None else Path(sysroot),
        with_locals=locals,
    )
    return Report(name, found, diagnosis)
