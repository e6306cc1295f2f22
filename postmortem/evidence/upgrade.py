"""Conversion of evidence of earlier schemas to the current one.

``postmortem.evidence/1`` → ``/2``: a wait's phrase becomes a verb and the rest, an import lock names its module, and
gaps may have codes (those written without one have none).
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator

FIRST = "postmortem.evidence/1"

_CALL = re.compile(r"(?P<call>\w+) on (?:(?P<what>.*) \(descriptor (?P<fd>\d+)\)|descriptor (?P<alone>\d+))", re.S)
_IMPORT = "import of module "


def upgraded(value: Any, schema: str) -> Any:
    """Convert decoded JSON of ``postmortem.evidence/1`` to ``schema``, in place, and return it.

    A value that does not have the shape of evidence is left for the decoder to refuse.
    """
    if not isinstance(value, dict) or value.get("schema") != FIRST:
        return value
    value["schema"] = schema
    for process in _dicts(value.get("processes")):
        for thread in _dicts(process.get("threads")):
            if isinstance(thread.get("wait"), dict):
                _wait(thread["wait"])
        for resource in _dicts(process.get("resources")):
            described = resource.get("description")
            if resource.get("kind") == "import-lock" and isinstance(described, str) and described.startswith(_IMPORT):
                module = described[len(_IMPORT) :]
                resource["module"] = module if module != "?" else None
    return value


def _dicts(value: Any) -> Iterator[Dict[str, Any]]:
    """Yield the dicts of a list; nothing for any other value."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _wait(wait: Dict[str, Any]) -> None:
    """Split a wait's phrase into its verb and the rest."""
    detail = wait.get("detail")
    if not isinstance(detail, str):
        return
    verb, _space, rest = detail.partition(" ")
    call = _CALL.fullmatch(detail)
    if call is not None and wait.get("syscall") == call["call"] and str(wait.get("fd")) in (call["fd"], call["alone"]):
        wait["verb"], wait["detail"] = "call", call["what"]
    elif verb in ("waits", "wants", "asks") and rest:
        wait["verb"], wait["detail"] = verb, rest
