"""Cases of every pattern, in every format: valid by the format's published schema."""

from __future__ import annotations

import json
from typing import Any, List, Tuple

import jsonschema
import pytest

from postmortem import evidence as ev
from postmortem import report
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis
from tests.corpora.cases import all_cases

from ...support.diagnosed import classify
from .validators import check, constrained_keys, schema, thinned

Diagnosed = List[Tuple[str, Evidence, Diagnosis]]


@pytest.fixture(scope="module")
def diagnosed() -> Diagnosed:
    """Return the smallest recorded case of each pattern, and every case whose evidence is written by hand."""
    cases = [case for case in all_cases() if case.evidence.exists()]
    chosen = {case.name: case for case in cases if case.record == "synthesised"}
    for case in sorted(cases, key=lambda case: -case.evidence.stat().st_size):
        chosen[case.folder.parent.name] = case
    found = [(case.name, ev.decode(case.evidence.read_bytes())) for case in chosen.values()]
    return [(name, one, classify(one)) for name, one in found]


def test_every_report_follows_our_schema(diagnosed: Diagnosed) -> None:
    """report.json of each case, by the schema that `postmortem report --schema` prints."""
    validator = schema("report")
    constrained = constrained_keys(validator.schema)
    for case, found, diagnosis in diagnosed:
        document = thinned(json.loads(report.render("json", found, diagnosis)), constrained)
        assert validator.is_valid(document), (case, [error.message for error in deepest(validator, document)])


def deepest(validator: Any, document: object) -> List[jsonschema.ValidationError]:
    """What is wrong, rather than that no alternative fits."""
    return [jsonschema.exceptions.best_match([error]) for error in validator.iter_errors(document)]


@pytest.mark.parametrize("name", ["sarif", "junit", "speedscope", "collapsed", "github", "markdown"])
def test_other_formats_are_valid(diagnosed: Diagnosed, name: str) -> None:
    """One case in three of these."""
    shown = 0
    for case, found, diagnosis in diagnosed[::3]:
        try:
            text = report.render(name, found, diagnosis)
        except report.NothingToShow:
            assert not any(thread.samples for process in found.processes for thread in process.threads), case
            continue
        check(name, text)
        shown += 1
    assert shown > 10


def test_thinning_hides_no_fault() -> None:
    """A wrong type, a missing key and a word outside of its list are found among many that are right."""
    validator = schema("report")
    constrained = constrained_keys(validator.schema)
    assert {"confidence", "gil"} <= constrained
    case = next(case for case in all_cases() if case.name == "self-deadlock/session-table")
    found = ev.decode(case.evidence.read_bytes())
    whole = json.loads(report.render("json", found, classify(found)))
    assert validator.is_valid(thinned(whole, constrained))
    threads = whole["processes"][0]["threads"]
    threads[:] = [json.loads(json.dumps(threads[0])) for _ in range(200)]
    assert len(thinned(whole, constrained)["processes"][0]["threads"]) == 1
    for key, value in (("tid", "7"), ("gil", "perhaps"), ("name", 7)):
        right, threads[100][key] = threads[100][key], value
        assert not validator.is_valid(thinned(whole, constrained))
        threads[100][key] = right
    del threads[100]["wait"]
    assert not validator.is_valid(thinned(whole, constrained))
