"""What a pattern still lacks, one sentence each: for the test, and for whoever adds one.

    python -m tests.corpora.completeness [ID]...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator, List, Sequence

from postmortem.cli import pages
from postmortem.classify.engine import Rule, all_patterns
from postmortem.classify.snippets import SNIPPETS, WITHOUT

from .cases import GUISES, ROOT, Case, all_cases

REPOSITORY = ROOT.parent
PATTERNS = REPOSITORY / "postmortem" / "classify" / "patterns"
TESTS = REPOSITORY / "tests" / "unit" / "classify"

POSITIVES, NEGATIVES = 3, 2
#: Left by `make new-pattern` wherever somebody has to write something.
PLACEHOLDER = "TODO"


def missing(rule: Rule, cases: Sequence[Case]) -> List[str]:
    """One sentence for each thing that a pattern needs and has not got."""
    return [*_page(rule), *_lists(rule), *_tests(rule), *_cases(rule, cases)]


def module_of(pattern: str) -> Path:
    """Its file, in the folder of its family; of one that nobody has written, where it would lie without a family."""
    name = f"{pattern.replace('-', '_')}.py"
    return next(PATTERNS.glob(f"*/{name}"), PATTERNS / name)


def test_of(pattern: str) -> Path:
    return TESTS / "patterns" / module_of(pattern).parent.name / f"test_{pattern.replace('-', '_')}.py"


def _page(rule: Rule) -> Iterator[str]:
    where = f"the docstring of {module_of(rule.id).relative_to(REPOSITORY)}"
    found = [section.heading for section in pages.sections(rule.doc) if section.text]
    if not pages.introduction(rule.doc):
        yield f"{where} has no first sentence that says what the pattern is"
    for heading in pages.SECTIONS:
        if not any(one == heading or (heading == "Why" and one.startswith("Why ")) for one in found):
            yield f"{where} has no section **{heading}{' it hangs' if heading == 'Why' else ''}.**"
    if not (REPOSITORY / "docs" / "patterns" / f"{rule.id}.md").exists():
        yield f"docs/patterns/{rule.id}.md is not written: make docs"
    if PLACEHOLDER in module_of(rule.id).read_text("utf-8"):
        yield f"{module_of(rule.id).relative_to(REPOSITORY)} still says {PLACEHOLDER} somewhere"


def _lists(rule: Rule) -> Iterator[str]:
    if not rule.pattern.references:
        yield "PATTERN has no references: name the documentation or the issue that a reader can check"
    if not rule.pattern.remedy:
        yield "PATTERN has no remedy"
    if rule.id not in SNIPPETS and rule.id not in WITHOUT:
        yield (
            "postmortem/classify/snippets has no code before and after: add some, or say in WITHOUT why the remedy is no "
            "change of a few lines"
        )
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    if not re.search(rf"^\| `{rule.id}` \|", readme, re.M):
        yield f"README.md has no line | `{rule.id}` | … | in the table under *What it recognises*"


def _tests(rule: Rule) -> Iterator[str]:
    own = test_of(rule.id)
    if own.exists():
        if PLACEHOLDER in own.read_text("utf-8"):
            yield f"{own.relative_to(REPOSITORY)} still says {PLACEHOLDER} somewhere"
    elif not any(f'"{rule.id}"' in path.read_text("utf-8") for path in TESTS.glob("**/test_*.py")):
        yield f"no unit test: there is no {own.relative_to(REPOSITORY)}, and no module of {TESTS.name}/ names it"


def _cases(rule: Rule, cases: Sequence[Case]) -> Iterator[str]:
    positives = [case for case in cases if rule.id in case.verdict]
    negatives = [case for case in cases if rule.id in case.confusable_with and rule.id not in case.verdict]
    if len(positives) < POSITIVES:
        yield f"the corpus has {len(positives)} of {POSITIVES} programs whose verdict it is"
    for guise in GUISES:
        if not any(case.guise == guise for case in positives):
            yield f'none of these has guise = "{guise}"'
    if len(negatives) < NEGATIVES:
        yield f"the corpus has {len(negatives)} of {NEGATIVES} programs that are `confusable_with` it and have it not"
    for case in positives:
        if not case.evidence.exists():
            yield f"corpora/{case.name} has no evidence.json: make corpora ARGS='--cases {case.name}'"
        if any(PLACEHOLDER in path.read_text("utf-8") for path in case.folder.iterdir() if path.suffix in (".py", ".toml")):
            yield f"corpora/{case.name} still says {PLACEHOLDER} somewhere"


def report(wanted: Sequence[str] = ()) -> List[str]:
    """Return what each pattern lacks: of those that are wanted, or of all."""
    cases = all_cases()
    rules = [rule for rule in all_patterns() if not wanted or rule.id in wanted]
    return [f"{rule.id}: {sentence}" for rule in rules for sentence in missing(rule, cases)]


if __name__ == "__main__":
    said = report(sys.argv[1:])
    print("\n".join(said) or "nothing is missing")
    sys.exit(bool(said))
