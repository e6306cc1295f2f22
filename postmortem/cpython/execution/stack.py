"""The value stack of an evaluation: a list of values, with None for NULL; an empty one gives unknown values."""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Tuple

from .values import MOST_ITEMS, UNKNOWN, Value, either

Stack = List[Optional[Value]]
MOST_NESTED = 4


def either_of(one: Dict[str, Value], other: Dict[str, Value]) -> Dict[str, Value]:
    """Return variables that hold what they hold in either; in the order of the first, then of the second."""
    return {name: either(one.get(name, UNKNOWN), other.get(name, UNKNOWN)) for name in {**one, **other}}


def popped(stack: Stack) -> Optional[Value]:
    """Take the topmost slot off a stack; None if it is empty or NULL."""
    return stack.pop() if stack else UNKNOWN


def pop1(stack: Stack) -> Value:
    """Take the topmost value off a stack; unknown if there is none."""
    return (stack.pop() if stack else UNKNOWN) or UNKNOWN


def pop(stack: Stack, count: int = 1) -> None:
    """Take slots off a stack."""
    if count:
        del stack[-count:]


def top(stack: Stack) -> Value:
    """Return the topmost value; unknown if there is none."""
    return (stack[-1] if stack else UNKNOWN) or UNKNOWN


def take(stack: Stack, count: int) -> List[Value]:
    """Take values off a stack, the lowest first; unknown ones where there are none."""
    found = [each or UNKNOWN for each in stack[len(stack) - count :]] if 0 < count <= len(stack) else []
    if count > len(stack):
        found = [UNKNOWN] * min(count - len(stack), MOST_ITEMS) + [each or UNKNOWN for each in stack]
    pop(stack, count)
    return found


def nesting(values: Iterable[Value]) -> int:
    """Return how deep values are nested in new tuples, mappings, closures and methods."""
    deepest = 0
    waiting: List[Tuple[Value, int]] = [(value, 1) for value in values]
    for value, depth in waiting:
        deepest = max(deepest, depth)
        if depth > MOST_NESTED + 1 or len(waiting) > 500:
            return depth + MOST_NESTED
        for atom in value:
            if atom[0] == "tuple":
                waiting += [(each, depth + 1) for each in atom[1]]
            elif atom[0] == "many":
                waiting.append((atom[1], depth + 1))
            elif atom[0] == "map":
                waiting += [(each, depth + 1) for _name, each in atom[1]]
            elif atom[0] == "code":
                waiting += [(each, depth + 1) for each in atom[2]]
            elif atom[0] in ("method", "cmethod", "super"):
                waiting.append((frozenset((atom[2],)), depth + 1))
    return deepest
