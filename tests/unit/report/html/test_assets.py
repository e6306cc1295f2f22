"""What a page brings along: libraries as their makers published them, scripts that load nothing."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, List

from postmortem.report.html import assets, page
from tools import vendor

from ....support.samples import sleeper


def manifest() -> List[Dict[str, Any]]:
    return json.loads((vendor.FOLDER / "manifest.json").read_text("utf-8"))


def test_libraries_are_what_the_manifest_says() -> None:
    """Each file has the checksum that `python -m tools.vendor` wrote, and no other file is there."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendor.FOLDER.iterdir()}
    del found["manifest.json"]
    assert found == {name: digest for library in manifest() for name, digest in library["files"].items()}


def test_the_manifest_is_of_the_pinned_versions() -> None:
    """A version that is changed in tools/vendor.py is fetched, too."""
    pinned = [(one.name, one.version, one.license, [name for _path, name in one.files]) for one in vendor.LIBRARIES]
    assert pinned == [(one["name"], one["version"], one["license"], list(one["files"])) for one in manifest()]


def test_each_library_comes_with_its_licence() -> None:
    """All of them ask for that, in the page as well."""
    document = page.render(*sleeper())
    for text in ("ISC", "Permission is hereby granted, free of charge", "Apache License"):
        assert text in assets.licenses() or text == "ISC"
    assert "Mike Bostock" in document
    assert set(assets.VENDOR) | set(assets.LICENSES) == {name for one in manifest() for name in one["files"]}


def test_every_own_file_is_used_and_small() -> None:
    """No leftovers; modules of a size that can be read."""
    own = {path.name for path in assets.FOLDER.iterdir() if path.is_file()}
    assert own == set(assets.STYLES) | set(assets.SCRIPTS)
    for name in own:
        assert (assets.FOLDER / name).read_text("utf-8").count("\n") < 400, name


def test_own_scripts_make_elements_of_text_alone() -> None:
    """Nothing of ours parses HTML, evaluates strings, or asks the network."""
    parses = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\.html\(|\beval\(|new Function"
    for name in assets.SCRIPTS:
        text = (assets.FOLDER / name).read_text("utf-8")
        assert not re.search(rf"{parses}|fetch\(|XMLHttp|Math\.random|Date\.now|new Date", text), name


def test_no_library_asks_for_its_source_map() -> None:
    """A browser's tools would, for a file that is not there."""
    assert not [name for name in assets.VENDOR if "sourceMappingURL" in (vendor.FOLDER / name).read_text("utf-8")]
