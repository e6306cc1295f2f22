"""Lays out the files of a new pattern, which abstains until it is written, and says what it still lacks.

    python -m tools.new_pattern my-pattern locks

A file that exists is left alone: run it again to see what remains to be done.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, List, Sequence

from tests.corpora.completeness import PATTERNS, REPOSITORY, TESTS, module_of, report

ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

RULE = '''"""TODO: one sentence that says what it is.

**What it looks like.** TODO: what a reader sees from outside, and on the stacks: CPU, states, what is waited for.

**Easily mistaken for** TODO: `network-wait`, and what tells them apart.

**Why it hangs.** TODO: in words for somebody who has never seen it.

**Remedy.** TODO: what to change.
"""

from __future__ import annotations

from typing import Iterator

from ....findings import Template
from ...facts.view import View
from ...pattern import Answer, CannotTell, Pattern

PATTERN = Pattern(
    id="{id}",
    title="TODO: one line",
    explanation="TODO: why it hangs, every term explained in a few words.",
    remedy="TODO: what to change.",
    tier="symptom",  # TODO: how much it explains; TIERS in pattern.py has the list
    needs=("python",),
    references=(),
)

_NOT_WRITTEN = Template("a rule: {id} is not written yet")


def match(view: View) -> Iterator[Answer]:
    """Guards first: `yield No(...)` where something was looked at and is not so. One Match last."""
    if view.pythons:
        yield CannotTell((_NOT_WRITTEN(),))
'''

TEST = '''"""{id}: TODO, what it looks for in a sentence."""

from __future__ import annotations

from .....support.make import evidence, found, process, stack, thread


def test_it_claims_nothing_yet() -> None:
    """TODO: a match; then each guard; silence without a window; *possible* at most from a lone core."""
    assert "{id}" not in found(evidence(process([thread(1, stack("main"))])))
'''

LABEL = """[case]
title = "TODO: what happens, in one line"
kind = "hang"
guise = "{guise}"
verdict = ["{id}"]
also = []
must_not = ["lock-order-deadlock", "self-deadlock"]
confusable_with = ["network-wait"]
pythons = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
timeout = 2.0
source = "TODO: made here, or the issue that it is made after"
note = "TODO: what is seen where, and what to change."
"""

PLAIN = '''"""TODO: what the program is for, without a word of what is wrong with it."""


def main():
    print("ready", flush=True)
    raise NotImplementedError("TODO: the fault alone")  # CULPRIT


main()
'''

BURIED = '''"""TODO: what the program is for, without a word of what is wrong with it."""


class Store:
    def fetch(self, name):
        raise NotImplementedError("TODO: the same fault, three calls down")  # CULPRIT


class Service:
    def __init__(self, store):
        self.store = store

    def answer(self, name):
        return self.store.fetch(name)


def main():
    service = Service(Store())
    print("ready", flush=True)
    service.answer("first")


main()
'''


def files(pattern: str, family: str) -> Dict[Path, str]:
    """Where what goes. The names of cases do not tell what is wrong with them."""
    name = pattern.replace("-", "_")
    corpus = REPOSITORY / "corpora" / pattern
    return {
        PATTERNS / family / f"{name}.py": RULE.replace("{id}", pattern),
        TESTS / "patterns" / family / "__init__.py": "",
        TESTS / "patterns" / family / f"test_{name}.py": TEST.replace("{id}", pattern),
        corpus / "first-program" / "program.py": PLAIN,
        corpus / "first-program" / "case.toml": LABEL.replace("{id}", pattern).replace("{guise}", "plain"),
        corpus / "second-program" / "program.py": BURIED,
        corpus / "second-program" / "case.toml": LABEL.replace("{id}", pattern).replace("{guise}", "buried"),
    }


def with_line(readme: str, pattern: str) -> str:
    """The README with a line for the pattern at the end of its table."""
    rows = list(re.finditer(r"^\| `[a-z-]+` \|.*\n", readme.split("\n## Which interpreters", maxsplit=1)[0], re.M))
    if f"| `{pattern}` |" in readme or not rows:
        return readme
    return readme[: rows[-1].end()] + f"| `{pattern}` | TODO |\n" + readme[rows[-1].end() :]


def lay_out(pattern: str, family: str) -> List[Path]:
    """Writes what is not there yet; returns it."""
    written = []
    for path, text in files(pattern, family).items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            written.append(path)
    readme = REPOSITORY / "README.md"
    text = with_line(readme.read_text("utf-8"), pattern)
    if text != readme.read_text("utf-8"):
        readme.write_text(text, "utf-8")
        written.append(readme)
    return written


def main(arguments: Sequence[str]) -> int:
    families = sorted(path.parent.name for path in PATTERNS.glob("*/__init__.py"))
    pattern, family = (*arguments, "", "")[:2]
    known = bool(ID.fullmatch(pattern)) and module_of(pattern).exists()
    if len(arguments) > 2 or not ID.fullmatch(pattern) or not (known or family in families):
        print(
            "make new-pattern ID=my-pattern FAMILY=locks: lower case, words joined by dashes; the families are "
            f"{', '.join(families)}",
            file=sys.stderr,
        )
        return 2
    for path in [] if known else lay_out(pattern, family):
        print(f"written: {path.relative_to(REPOSITORY)}")
    lacks = report([pattern])
    print(
        "\n".join(
            ["", f"{pattern} lacks:", *(f"  - {said.partition(': ')[2]}" for said in lacks)] if lacks else ["complete"]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
