"""Texts in words: templates of patterns with their slots filled, and the steps of the wait graph's derivations."""

from __future__ import annotations

import re
import string
from typing import Callable, Dict, Iterable, List, Mapping, Optional, cast

from ...evidence import Because, Evidence, Fact, PythonFrame, Trigger
from ...evidence.vocabulary import WakerBasis
from ...findings import Slot, Template, Text, ThreadName
from ...findings.found import Said
from ...waitgraph import Agent, Blocked, NoneRuns, Others, Places
from ...waitgraph.edges import What
from ...waitgraph.reasons import Agents
from . import bases
from .facts import WORDS

_FORMATTER = string.Formatter()
#: Formats of numbers; a separator is the format of a tuple, and a damaged bundle may have a number there.
_NUMERIC = re.compile(r"#?,?(\.\d+)?[dfgx%]?")


class Wording:
    """A writer of texts about one evidence document."""

    def __init__(self, places: Places) -> None:
        self._places = places
        #: What stands for a slot, by the type of its value.
        self._names: Dict[type, Callable[..., str]] = {
            str: str,
            Text: self.text,
            Fact: self.text,
            Agent: self._places.label,
            ThreadName: thread_name,
            PythonFrame: place,
        }

    def text(self, said: Said) -> str:
        """Return a text or a step in words."""
        if isinstance(said, str):
            return said
        if isinstance(said, Blocked):
            return self._blocked(said)
        if isinstance(said, Others):
            return f"and {said.number} more that these wait for"
        if isinstance(said, NoneRuns):
            return _none_runs(said)
        if isinstance(said, Fact):
            return self.filled(WORDS[said.code], said.slots)
        return self.filled(said.template, dict(said.slots))

    def filled(self, template: Template, slots: Mapping[str, Slot]) -> str:
        """Return a template in words."""
        parts = []
        for words, name, spec, _conversion in _FORMATTER.parse(template.words):
            parts.append(words)
            if name is not None:
                parts.append(self._slot(slots.get(name), spec or ""))  # a damaged bundle may lack one
        return "".join(parts)

    def what(self, what: What) -> str:
        """Return in words what an agent waits for."""
        return self._places.label(what) if isinstance(what, Agent) else self.text(what)

    def _blocked(self, said: Blocked) -> str:
        several = len(said.agents.first) > 1
        return f"{self._agents(said.agents)}{': each' if several else ''} {self._waits(said)}"

    def _waits(self, said: Blocked) -> str:
        if said.threads:
            return f"makes no progress until one of its {said.threads} threads does"
        text = f"{said.verb} {self.what(said.what)}"
        if said.gone:
            return f"{text}, whose holder has ended"
        limit = ", without a time limit" if said.endless else ""
        if said.held:
            return f"{text}, held by {self._agents(said.wakers)} ({bases.known(said.basis)}){limit}"
        if said.wakers.first:
            return f"{text}{limit}; only {self._agents(said.wakers)} could end this wait"
        return f"{text}{limit}; nothing can end this wait" if said.nobody else f"{text}{limit}"

    def _agents(self, agents: Agents) -> str:
        named = ", ".join(map(self._places.label, agents.first))
        return named + (f" and {agents.others} more" if agents.others else "")

    def _slot(self, value: Slot, spec: str) -> str:
        """Return the words for a slot's value; see Template for the formats."""
        if spec == "known":
            return bases.known(cast(Optional[WakerBasis], value))
        if spec.startswith("+"):
            return spec[1:].replace("@", self._slot(value, "")) if value else ""
        if value is None:
            return ""
        named = self._names.get(type(value))
        if named is not None:
            return named(value)
        if isinstance(value, tuple):
            return (spec or ", ").join(self._slot(item, "") for item in value)
        if spec.startswith("n "):
            return counted(value, spec[2:])
        if spec.startswith("v "):
            one, _bar, several = spec[2:].partition("|")
            form = (one if several else f"{one}s") if value == 1 else several or one
            return form.replace("@", str(value))
        return format(value, spec if _NUMERIC.fullmatch(spec) else "")


def facts_in_words(because: Iterable[Because]) -> List[str]:
    """Return facts in words; they name no thread or task by its number alone, so no evidence is needed."""
    return list(map(_FACTS.text, because))


def filled(template: Template, slots: Mapping[str, Slot]) -> str:
    """Return a template in words whose slots are names and numbers."""
    return _FACTS.filled(template, slots)


def _none_runs(said: NoneRuns) -> str:
    all_threads = f"all {said.threads} threads wait" if said.threads != 1 else "its only thread waits"
    and_tasks = (
        f", and so do all {said.tasks} tasks" if said.tasks > 1 else ", and so does its task" if said.tasks else ""
    )
    handlers = "; the program has set no signal handler" if said.no_handlers else ""
    return (
        f"only code in process {said.pid} could signal these, and none of it can run: {all_threads} without a time limit"
        f"{and_tasks}; no timer is set, and no descriptor or outside process can wake one{handlers}"
    )


def counted(number: object, noun: str) -> str:
    """Return a number with its noun, "process|processes", in singular or plural; "s" is added if only one form is given."""
    one, _bar, several = noun.partition("|")
    return f"{number} {one if number == 1 else several or one + 's'}"


def thread_name(thread: ThreadName) -> str:
    """Return "NAME (TID)", or "thread TID" if it has no name."""
    return f"{thread.name} ({thread.tid})" if thread.name else f"thread {thread.tid}"


def place(frame: PythonFrame) -> str:
    """Return a short location: ``testclient.py:153 in _asgi_receive``."""
    return f"{frame.file.rsplit('/', 1)[-1]}:{frame.line or '?'} in {frame.function}"


_FACTS = Wording(Places(Evidence(Trigger("core"))))
