"""Objects without memory: what the searches ask of a target, answered from a few Python values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.runtime import layouts as L

FLAGS = {"list": L.FLAG_LIST, "tuple": L.FLAG_TUPLE}


class Code(NamedTuple):
    filename: str
    name: str
    address: int = 0


class Frame:
    """A frame of a function, with its variables and its module's."""

    def __init__(
        self,
        function: str,
        variables: Optional[Dict[str, int]] = None,
        namespace: int = 0,
        file: str = "/app/service.py",
        code: int = 0,
    ) -> None:
        self.code = Code(file, function, code)
        self.function = function
        self.variables = variables or {}
        self.namespace = namespace


class Heap:
    """Stands for Python, its Objects and its Frames. An address that nobody made is no object."""

    def __init__(self) -> None:
        self.objects = self.frames = self
        self.kinds: Dict[int, str] = {}
        self.inside: Dict[int, Any] = {}
        self.parts: Dict[int, Dict[str, int]] = {}
        self.flags: Dict[str, int] = dict(FLAGS)
        self.looked_at: List[int] = []

    def make(self, kind: str, inside: Any = (), **attributes: int) -> int:
        address = 0x1000 * (len(self.kinds) + 1)
        self.kinds[address], self.inside[address], self.parts[address] = kind, inside, attributes
        return address

    # ------------------------------------------------------------------ as Objects

    def type_name(self, address: int) -> Optional[str]:
        self.looked_at.append(address)
        return self.kinds.get(address)

    def type_of(self, address: int) -> Any:
        if address not in self.kinds:
            raise NotThat("not an object")
        kind = self.kinds[address]
        return SimpleNamespace(name=kind, flags=self.flags.get(kind, 0), basicsize=16)

    def is_instance(self, address: int, name: str) -> bool:
        return self.kinds.get(address) == name

    def length(self, address: int) -> int:
        return len(self.inside[address])

    def length_or_none(self, address: int) -> Optional[int]:
        return len(self.inside[address]) if address in self.inside else None

    def items(self, address: int, most: int) -> Sequence[int]:
        if len(self.inside[address]) > most:
            raise NotThat("implausibly long")
        return list(self.inside[address])

    def first_items(self, address: int, most: int) -> Sequence[int]:
        return list(self.inside[address])[:most]

    def dict_items(self, address: int) -> Iterator[Tuple[int, int]]:
        return iter([(0, item) for item in self.inside[address]])

    def set_items(self, address: int) -> Iterator[int]:
        return iter(self.inside[address])

    def deque_items(self, address: int, most: int) -> Iterator[int]:
        return iter(list(self.inside[address])[:most])

    def text_dict(self, address: int) -> Dict[str, int]:
        if address not in self.inside:
            raise NotThat("damaged dict")
        found: Dict[str, int] = self.inside[address]
        return found

    def number(self, address: int) -> float:
        found: float = self.inside[address]
        return found

    def optional_text(self, address: int) -> Optional[str]:
        found = self.inside.get(address)
        return found if isinstance(found, str) else None

    # ------------------------------------------------------------------ as Frames

    def locals(self, frame: Frame) -> Iterator[Tuple[str, int]]:
        return iter(frame.variables.items())

    def globals(self, frame: Frame) -> int:
        return frame.namespace

    # ------------------------------------------------------------------ in place of attributes.py

    @staticmethod
    def attributes(heap: Heap, address: int) -> Dict[str, int]:
        if address not in heap.parts:
            raise NotThat("not an object")
        return heap.parts[address]

    @staticmethod
    def class_value(heap: Heap, address: int, name: str) -> Optional[int]:
        return None
