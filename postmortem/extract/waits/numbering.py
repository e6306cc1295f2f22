"""Numbers that tell resources with equal descriptions apart."""

from __future__ import annotations

from collections import Counter
from typing import List, Sequence

from ...evidence import Resource
from ...evidence import replace as changed


def numbered(found: Sequence[Resource]) -> List[Resource]:
    """Return resources with numbers added to equal descriptions.

    Futures of tasks are left as they are: one line may create thousands.
    """
    alike = Counter(resource.description for resource in found)
    seen: Counter[str] = Counter()
    return [_with_number(resource, alike, seen) for resource in found]


def _with_number(resource: Resource, alike: Counter[str], seen: Counter[str]) -> Resource:
    text = resource.description
    if alike[text] == 1 or resource.kind == "async-future":
        return resource
    seen[text] += 1
    return changed(resource, description=f"{text} #{seen[text]}")
