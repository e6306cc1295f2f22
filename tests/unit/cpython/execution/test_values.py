"""Possible values of an expression."""

from postmortem.cpython.execution.values import MOST_ATOMS, PLAIN, Value, one_of


def nested(depth: int) -> Value:
    """A tuple whose two items are one tuple, and so on: written out, it would double with each level."""
    value = PLAIN
    for _ in range(depth):
        value = frozenset({("tuple", (value, value))})
    return value


def test_of_too_many_alternatives_some_are_left_out() -> None:
    """Always the same ones."""
    atoms = [("obj", address) for address in range(2 * MOST_ATOMS)]
    found = one_of(atoms)
    assert len(found) == MOST_ATOMS and found == one_of(reversed(atoms))


def test_the_choice_does_not_write_out_what_is_nested() -> None:
    """Containers of containers, as parsers and drivers of databases make them, would take for ever."""
    atoms = [("tuple", (next(iter(nested(200))), index)) for index in range(2 * MOST_ATOMS)]
    assert len(one_of(atoms)) == MOST_ATOMS
