"""Evidence of earlier versions, changed to read like this version's.

``postmortem.evidence/1`` → ``/2``: a wait's phrase is a verb and what follows it, an import lock names its module, and
gaps have codes (None for gaps that were written without one).
"""

from __future__ import annotations

import re

from .document import SCHEMA, Evidence
from .processes import Process
from .resources import Resource
from .structs import replace
from .threads import Thread, Wait

FIRST = "postmortem.evidence/1"

_CALL = re.compile(r"(?P<call>\w+) on (?:(?P<what>.*) \(descriptor (?P<fd>\d+)\)|descriptor (?P<alone>\d+))", re.S)
_IMPORT = "import of module "


def upgraded(evidence: Evidence) -> Evidence:
    """Return evidence of ``postmortem.evidence/1`` as this version's; any other as it is."""
    if evidence.schema != FIRST:
        return evidence
    return replace(evidence, schema=SCHEMA, processes=tuple(map(_process, evidence.processes)))


def _process(process: Process) -> Process:
    threads = tuple(map(_thread, process.threads))
    return replace(process, threads=threads, resources=tuple(map(_resource, process.resources)))


def _thread(thread: Thread) -> Thread:
    return thread if thread.wait is None else replace(thread, wait=_wait(thread.wait))


def _resource(resource: Resource) -> Resource:
    if resource.kind != "import-lock" or not resource.description.startswith(_IMPORT):
        return resource
    module = resource.description[len(_IMPORT) :]
    return replace(resource, module=module if module != "?" else None)


def _wait(wait: Wait) -> Wait:
    """Split the phrase of a wait."""
    if wait.detail is None:
        return wait
    call = _CALL.fullmatch(wait.detail)
    if call is not None and wait.syscall == call["call"] and str(wait.fd) in (call["fd"], call["alone"]):
        return replace(wait, verb="call", detail=call["what"])
    for verb in ("waits", "wants", "asks"):
        if wait.detail.startswith(f"{verb} "):
            return replace(wait, verb=verb, detail=wait.detail[len(verb) + 1 :])
    return wait
