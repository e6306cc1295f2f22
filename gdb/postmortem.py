"""Postmortem's commands for a person in gdb: `source` this file, or start with `postmortem debug TARGET`.

It makes two packages importable without touching sys.path (which would show another Python's site-packages to gdb's):
`postmortem`, of which only the parts that need the standard library alone are used here, and `postmortem_gdb`, the
files beside this one, whose folder's name `gdb` is taken.
"""

import importlib.util
import sys
from pathlib import Path

import gdb

HERE = Path(sys._getframe().f_code.co_filename).resolve().parent
#: In a wheel this folder lies inside the package, in a checkout beside it.
PLACES = (HERE.parent.parent, HERE.parent / "postmortem")


def package_folder():
    for place in PLACES:
        if (place / "cpython" / "state" / "interpreter.py").is_file():
            return place
    raise gdb.GdbError("postmortem's package is not beside its gdb scripts: install postmortem again")


def bare_package(name, folder):
    """A package that runs no __init__ of its own: some of ours import what gdb's Python does not have."""
    spec = importlib.util.spec_from_loader(name, None, is_package=True)
    module = importlib.util.module_from_spec(spec)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def main():
    if sys.version_info < (3, 8):  # noqa: UP036 - gdb's Python is not the one that postmortem was installed with
        raise gdb.GdbError("this gdb's Python is older than 3.8, which postmortem's commands need")
    folder = package_folder()
    for name in [name for name in sys.modules if name.split(".")[0] in ("postmortem", "postmortem_gdb")]:
        del sys.modules[name]  # sourced again, maybe from another installation
    bare_package("postmortem", folder)
    bare_package("postmortem.native", folder / "native")
    bare_package("postmortem_gdb", HERE)
    from postmortem_gdb import commands  # noqa: PLC0415 - only now is it importable

    commands.register()


main()
