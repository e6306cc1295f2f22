"""Which function in C a frame has called: read off a value stack that keeps what was there before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.frames import nativecalls
from postmortem.cpython.frames.nativecalls import NativeCall, native_call
from postmortem.cpython.objects.builtins import NotThat

from ....support.pythonheap import Heap

LOCALS = 2


class Stack(Heap):
    """A heap with functions in C, and one frame's value stack."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = self
        self.slots: List[int] = []
        self.used: Optional[int] = None
        self.iterating = False
        self.words: Dict[Tuple[int, int], int] = {}
        self.texts: Dict[int, bytes] = {}

    def function(self, name: str, self_: int = 0) -> int:
        """builtin_function_or_method: m_ml at 16, m_self at 24."""
        address = self.make("builtin_function_or_method")
        definition = address + 0x100
        self.words.update({(address, 16): definition, (address, 24): self_})
        self.texts[definition + 0x10] = name.encode()
        self.words[definition, 0] = definition + 0x10
        return address

    def method(self, owner: str, name: str) -> int:
        """method_descriptor: d_type at 16, d_name at 24."""
        address = self.make("method_descriptor")
        self.words.update({(address, 16): self.make(f"type {owner}"), (address, 24): self.make("str", name)})
        return address

    def module(self, name: str) -> int:
        address = self.make("module")
        self.words[address, 16] = self.make("dict", {"__name__": self.make("str", name)})
        return address

    def pattern(self, text: str) -> int:
        address = self.make("re.Pattern")
        self.words[address, 48] = self.make("str", text)
        return address

    def field(self, address: int, offset: int) -> int:
        if (address, offset) not in self.words:
            raise NotThat("no object")
        return self.words[address, offset]

    def u64(self, address: int) -> int:
        return self.words[address, 0]

    def cstring(self, address: int, most: int) -> bytes:
        return self.texts[address][:most]

    def lookup(self, namespace: int, name: str) -> Optional[int]:
        return self.text_dict(namespace).get(name)

    def type_at(self, address: int) -> Any:
        return SimpleNamespace(name=self.kinds[address].partition(" ")[2])

    def value_stack(self, _frame: Any) -> List[int]:
        return self.slots

    def height(self, _frame: Any) -> Optional[int]:
        return None if self.used is None else self.used + LOCALS


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setattr(nativecalls, "least_height", lambda *_: None)
    monkeypatch.setattr(nativecalls, "iterates", lambda frames, _frame: frames.iterating)
    return Stack()


def called(stack: Stack, *slots: int, used: Optional[int] = None, lasti: int = 10) -> Optional[NativeCall]:
    stack.slots, stack.used = list(slots), used
    frame: Any = SimpleNamespace(code=SimpleNamespace(nlocalsplus=LOCALS, address=0xC0DE), address=0xF0, lasti=lasti)
    frames: Any = stack
    return native_call(frames, frame)


def test_functions_have_the_name_of_their_module(stack: Stack) -> None:
    """`gc.collect`; those of builtins are known by their own name; a bound one by its object's class."""
    for module, name, expected in (("gc", "collect", "gc.collect"), ("builtins", "sum", "sum")):
        call = called(stack, stack.function(name, stack.module(module)), 0)
        assert call is not None
        assert call.function == expected
    bound = called(stack, stack.function("acquire", stack.make("_thread.lock")))
    assert bound is not None
    assert bound.function == "_thread.lock.acquire"


def test_a_pattern_is_told_with_its_call(stack: Stack) -> None:
    """A call of a regular expression shows the pattern, shortened, and the length of the text that it is given."""
    text = stack.make("str", "a" * 300)
    call = called(stack, stack.method("re.Pattern", "match"), stack.pattern("(a+)+$"), text)
    assert call is not None
    assert (call.function, call.detail, call.text) == ("re.Pattern.match", "pattern '(a+)+$'", 300)
    long = called(stack, stack.method("re.Pattern", "match"), stack.pattern("x" * 500))
    assert long is not None
    assert long.detail is not None
    assert long.detail.endswith("…")
    assert len(long.detail) < 200


def test_only_slots_in_use_count(stack: Stack) -> None:
    """What lies above was there before; the topmost function in use is the one that was called."""
    gc, old = stack.function("collect", stack.module("gc")), stack.function("sleep", stack.module("time"))
    call = called(stack, gc, 0, old, used=2)
    assert call is not None
    assert call.function == "gc.collect"


def test_the_exit_of_a_with_block_is_no_call_until_the_block_is_left(stack: Stack) -> None:
    """A `with` keeps ``__exit__`` below what its block works on; called, it has None or a number behind it."""
    kept, lock = stack.function("__exit__", stack.make("_thread.lock")), stack.make("_thread.lock")
    nothing = stack.make("NoneType")
    assert called(stack, kept, lock, used=2) is None  # the inner `with` acquires its lock
    assert called(stack, kept, used=1) is None
    left = called(stack, kept, nothing, nothing, nothing, used=4)
    raised = called(stack, kept, stack.make("int", 24), stack.make("ValueError"), used=3)
    for call in (left, raised):
        assert call is not None
        assert call.function == "_thread.lock.__exit__"


def test_two_candidates_are_no_answer(stack: Stack) -> None:
    """Where the height is unknown, and slots name two functions, either may be what was there before."""
    gc, old = stack.function("collect", stack.module("gc")), stack.function("sleep", stack.module("time"))
    assert called(stack, gc, old) is None
    assert called(stack) is None


def test_the_same_call_has_the_same_key(stack: Stack) -> None:
    """The frame, its instruction and what was given: another argument, or another instruction, is another call."""
    function, one, two = stack.function("dumps", stack.module("json")), stack.make("str", "a"), stack.make("str", "b")
    keys = [
        called(stack, function, one, used=2),
        called(stack, function, one, used=2),
        called(stack, function, two, used=2),
        called(stack, function, one, used=2, lasti=12),
    ]
    first, again, other, later = (call.key if call else None for call in keys)
    assert first == again
    assert len({first, other, later}) == 3


def test_garbage_is_passed_over(stack: Stack) -> None:
    """A slot that points nowhere, a function whose definition is gone."""
    broken = stack.make("builtin_function_or_method")
    call = called(stack, 0, 0x99999, broken, stack.function("collect", stack.module("gc")))
    assert call is not None
    assert call.function == "gc.collect"


def test_of_a_scanner_the_text_is_told(stack: Stack) -> None:
    """What re's finditer gives is called without arguments: the text that it goes through is its own. Where that is garbage
    the rest is told."""
    scanner, again = stack.make("_sre.SRE_Scanner"), stack.make("callable_iterator")
    text, pattern = stack.make("str", "b" * 70), stack.pattern("a|b")
    stack.words.update({(again, 16): stack.function("search", scanner), (scanner, 16): pattern, (scanner, 56): text})
    call = called(stack, again, used=1)
    assert call is not None
    assert (call.function, call.detail, call.text) == ("_sre.SRE_Scanner.search", "pattern 'a|b'", 70)
    stale = stack.function("iter", stack.module("builtins"))
    assert called(stack, again, stale) is None
    stack.iterating = True  # a `for` asks its iterator, whatever earlier calls have left above it
    call = called(stack, again, stale)
    assert call is not None and call.text == 70
    del stack.words[scanner, 56]
    call = called(stack, again, used=1)
    assert call is not None
    assert (call.detail, call.text) == ("pattern 'a|b'", None)
