"""Damage to the structure of JSON: a value of another type, an absurd number or text, keys gone, doubled, renamed, ids that
meet, lists a thousand times as long.

A place is a way of keys from the top, list indices left out: any place is as likely as any other, however often it occurs.
"""

from __future__ import annotations

import json
import random
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union


class Raw(NamedTuple):
    """JSON text, or what should be some: a number in its own digits, ``NaN``, ten thousand brackets."""

    text: str


class Pairs(List[Tuple[str, Any]]):
    """An object, whose keys may repeat."""


class Spot(NamedTuple):
    """A value by what holds it: an index of a list, or of an object's pairs."""

    holder: Union[Pairs, List[Any]]
    index: int  # type: ignore[assignment] # a tuple's own index() is not used

    @property
    def value(self) -> Any:
        found = self.holder[self.index]
        return found[1] if isinstance(self.holder, Pairs) else found

    def put(self, value: Any) -> None:
        self.holder[self.index] = (self.holder[self.index][0], value) if isinstance(self.holder, Pairs) else value


NUMBERS = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 400, "-1", "0", "1", "-0.0", "1.5", "1e308", "5e-324",
    "2147483648", "4294967295", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "-9223372036854775809", "1" + "0" * 5000, "100000000", "1e18", "true", "false",
)  # fmt: skip
INTEGERS = (
    "-1", "0", "1", "2", "7", "255", "65536", "2147483647", "4294967296", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "-9223372036854775808", "100000000", "-2147483648", "1000000000000",
)  # fmt: skip
FLOATS = (
    "0.0",
    "-0.0",
    "-1.5",
    "1e308",
    "-1e308",
    "5e-324",
    "1e18",
    "1e-9",
    "86400.0",
    "1e300",
    "0",
    "-7",
    "9007199254740993",
)
TEXTS = (
    "", "²", "٣", "\ud800", "\udcff", "\0", "x" * 100_000, "\x1b[2J\x07\x9b", "\r\n##vso[task.complete]", "../../../etc/passwd",
    "/etc/shadow", "/proc/self/mem", "/dev/zero", "1" * 5000, " 7", "+7", "1_000", "-5", "0x10", "<script>alert(1)</script>",
    "\u202e", "\u202e\u2028", "%s%n{0}", "NaN", "R", "python", "native", "]]>", "&#0;", "a\nb", "~" * 3000 + "/", "\uffff\ufffe",
)  # fmt: skip
_DEEP = (20, 500, 5_000, 100_000)
#: Times that a list gets longer; values that one place may get anew; characters that a list may become.
_MANY, _MOST, _LONGEST = 1000, 300_000, 12 << 20


def parsed(data: bytes) -> Any:
    return json.loads(data, object_pairs_hook=Pairs, parse_int=Raw, parse_float=Raw, parse_constant=Raw)


def text(value: Any) -> bytes:
    """Its JSON; lone surrogates as escapes."""
    parts: List[str] = []
    _write(value, parts)
    return "".join(parts).encode("utf-8", "surrogatepass")


def _write(value: Any, parts: List[str]) -> None:
    if isinstance(value, Raw):
        parts.append(value.text)
    elif isinstance(value, list):
        pairs = isinstance(value, Pairs)
        parts.append("{" if pairs else "[")
        for number, item in enumerate(value):
            if number:
                parts.append(",")
            if pairs:
                parts.append(json.dumps(item[0]) + ":")
            _write(item[1] if pairs else item, parts)
        parts.append("}" if pairs else "]")
    else:
        parts.append(json.dumps(value))


def spots(top: List[Any]) -> Dict[str, List[Spot]]:
    """Every value by its place."""
    found: Dict[str, List[Spot]] = {}
    for place, spot in _walk(top, ""):
        found.setdefault(place, []).append(spot)
    return found


def _walk(holder: List[Any], place: str) -> Iterator[Tuple[str, Spot]]:
    for index, item in enumerate(holder):
        # the keys of tables are data: pids, files, lines
        key = (f".{item[0]}" if item[0].isidentifier() else ".*") if isinstance(holder, Pairs) else "[]"
        value = item[1] if isinstance(holder, Pairs) else item
        yield place + key, Spot(holder, index)
        if isinstance(value, list):
            yield from _walk(value, place + key)


class Document:
    """Parsed JSON that is being damaged."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.top: List[Any] = [parsed(data)]
        self.rng = rng
        self.places = spots(self.top)

    def _any(self) -> Tuple[str, Spot]:
        place = self.rng.choice(sorted(self.places))
        return place, self.rng.choice(self.places[place])

    def _within_object(self) -> Tuple[str, Optional[Spot]]:
        places = sorted(p for p, several in self.places.items() if isinstance(several[0].holder, Pairs))
        place = self.rng.choice(places) if places else ""
        return place, self.rng.choice(self.places[place]) if places else None

    def absurd(self, like: Any) -> Any:
        """A value that should not be there; of the same type as often as not: what checks types lets that through."""
        if self.rng.random() < 0.6 and like is not None:
            return self._of_the_same_type(like)
        choice = self.rng.randrange(10)
        if choice <= 2 or (choice <= 4 and isinstance(like, Raw)):
            return Raw(self.rng.choice(NUMBERS))
        if choice <= 4 or (choice <= 6 and isinstance(like, str)):
            return self.rng.choice(TEXTS)
        return self.rng.choice(
            (
                None,
                True,
                False,
                [],
                Pairs(),
                [[]],
                [None],
                Pairs([("", None)]),
                Pairs([("kind", "python")]),
                ["x"] * 6,
                self._elsewhere(),
                self._elsewhere(),
                _nested(self.rng),
            )
        )

    def _of_the_same_type(self, like: Any) -> Any:
        if isinstance(like, Raw):
            return Raw(self.rng.choice(INTEGERS if like.text.lstrip("-").isdecimal() else FLOATS))
        if isinstance(like, bool):
            return not like
        if isinstance(like, str):
            return self.rng.choice(TEXTS)
        return Pairs() if isinstance(like, Pairs) else self.rng.choice(([], like * 2, like[::-1], like[:1] * 2))

    def _elsewhere(self) -> Raw:
        return Raw(
            text(self._any()[1].value).decode("utf-8", "surrogatepass")
        )  # a copy: it may hold what it is put into

    # ------------------------------------------------------------------ what is done

    def replace(self) -> str:
        place, spot = self._any()
        spot.put(self.absurd(spot.value))
        return place

    def everywhere(self) -> str:
        """The same at every occurrence of a place."""
        place, spot = self._any()
        value = self.absurd(spot.value)
        if _size(value) * len(self.places[place]) < _MOST:
            for each in self.places[place]:
                each.put(value)
        return place

    def meet(self) -> str:
        """One occurrence gets another's value, or all get the same, or they change places: ids refer elsewhere, to
        themselves, in circles."""
        places = sorted(p for p, several in self.places.items() if len(several) > 1)
        if not places:
            return self.replace()
        place = self.rng.choice(places)
        several = self.places[place]
        values = [spot.value for spot in several]
        how = self.rng.randrange(3)
        if how == 0:
            self.rng.choice(several).put(self.rng.choice(values))
        elif how == 1 and _size(values[0]) * len(values) < _MOST:
            for spot in several:
                spot.put(values[0])
        elif sum(map(_size, values)) < _MOST:
            self.rng.shuffle(values)
            for spot, value in zip(several, values):
                spot.put(value)
        return place

    def borrow(self) -> str:
        """The value of a place of the same last key, or of the same type: a tid for a pid, a task for a resource."""
        place, spot = self._any()
        alike = [p for p in sorted(self.places) if type(self.places[p][0].value) is type(spot.value) and p != place]
        if alike:
            other = self.rng.choice(self.places[self.rng.choice(alike)]).value
            if not isinstance(other, list):
                spot.put(other)
        return place

    def drop(self) -> str:
        place, spot = self._within_object()
        if spot is not None:
            del spot.holder[spot.index]
        return place

    def double(self) -> str:
        """A key twice, with another value the second time; or a list's item."""
        place, spot = self._any()
        item = spot.holder[spot.index]
        if isinstance(spot.holder, Pairs) and self.rng.random() < 0.5:
            item = (item[0], self.absurd(item[1]))
        spot.holder.insert(self.rng.randrange(len(spot.holder) + 1), item)
        return place

    def rename(self) -> str:
        place, spot = self._within_object()
        if spot is not None and isinstance(spot.holder, Pairs):
            other = self._within_object()[1]
            names = ["", "²", "-1", "٣", "7", "9" * 30, "\ud800", "\0", "1" * 5000]
            if other is not None:
                names += [other.holder[other.index][0]] * 3
            spot.holder[spot.index] = (self.rng.choice(names), spot.value)
        return place

    def thousandfold(self) -> str:
        """A list a thousand times as long, its items the same; or a table with a thousand keys."""
        lists = {
            p: [s.value for s in several if isinstance(s.value, list) and s.value] for p, several in self.places.items()
        }
        places = sorted(p for p, several in lists.items() if several)
        if not places:
            return self.replace()
        place = self.rng.choice(places)
        value = self.rng.choice(lists[place])
        item = self.rng.choice(value)
        written = text(item[1] if isinstance(value, Pairs) else item).decode("utf-8", "surrogatepass")
        times = min(_MANY * len(value), _LONGEST // (len(written) + 1))
        if isinstance(value, Pairs):
            value += [(str(number + 2), Raw(written)) for number in range(times)]
        else:
            value += [Raw(written)] * times
        return place


def _size(value: Any) -> int:
    """Values in it, itself included."""
    if not isinstance(value, list):
        return 1
    return 1 + sum(_size(item[1] if isinstance(value, Pairs) else item) for item in value)


def _nested(rng: random.Random) -> Raw:
    depth = rng.choice(_DEEP)
    return Raw(rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth)))


WAYS: Tuple[Tuple[int, str, Callable[[Document], str]], ...] = (
    (34, "replace", Document.replace),
    (10, "everywhere", Document.everywhere),
    (16, "meet", Document.meet),
    (10, "borrow", Document.borrow),
    (8, "drop", Document.drop),
    (6, "double", Document.double),
    (6, "rename", Document.rename),
    (6, "thousandfold", Document.thousandfold),
)


def damaged(data: bytes, rng: random.Random) -> Tuple[bytes, str]:
    """The text with one to five values damaged, and what was done. Text that is no JSON stays as it is."""
    try:
        document = Document(data, rng)
    except (ValueError, RecursionError):
        return data, "no JSON"
    said = []
    for _ in range(rng.choices((1, 2, 5), (6, 2, 1))[0]):
        _weight, name, way = rng.choices(WAYS, [weight for weight, _name, _way in WAYS])[0]
        said.append(f"{name} {way(document)}")
        document.places = spots(document.top)
        if not document.places:
            break
    return text(document.top[0]), ", ".join(said)
