"""The origin of a core, in a sentence."""

from __future__ import annotations

from ...evidence import Evidence, Origin
from . import labels

_STORES = {
    "systemd": "from systemd's journal",
    "apport": "from an apport report",
    "abrt": "from an abrt problem directory",
    "directory": "the newest in its directory",
}


def sentence(origin: Origin) -> str:
    """Return ``Core of PID 4711 (python3), unit web.service, SIGSEGV at 2026-01-31 12:00:00 UTC, …``, as far as known."""
    of = " said to be of" if origin.trust == "unverified" else " of"
    pid = f"{of} PID {origin.pid}" if origin.pid is not None else ""
    command = f" ({origin.command})" if origin.command else ""
    facts = [
        f"unit {origin.unit}" if origin.unit else "",
        f"in container {origin.container}" if origin.container else "",
        f"on {origin.hostname}" if origin.hostname else "",
        " at ".join(text for text in (origin.signal, origin.when) if text),
        _source(origin),
    ]
    plural = "s" if origin.others != 1 else ""
    more = f"; {origin.others} older one{plural} {'are' if plural else 'is'} left out" if origin.others else ""
    return f"{', '.join(filter(None, [f'Core{pid}{command}', *facts]))}{more}."


def _source(origin: Origin) -> str:
    if origin.trust == "copied":
        return "from the journal given with -D"
    if origin.trust == "unverified":
        writer = f"user {origin.written_by}" if origin.written_by is not None else "another program"
        return f"unverified: {writer} wrote this into systemd's journal, and nothing shows that it was systemd-coredump"
    return _STORES.get(origin.store, "")


def why(evidence: Evidence) -> str:
    """Return the reason for a report: the origin of its core, or the trigger of the capture."""
    return sentence(evidence.origin) if evidence.origin is not None else labels.trigger(evidence.trigger)
