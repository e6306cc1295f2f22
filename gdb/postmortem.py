"""The pm-* commands for an interactive gdb: `source` this file, or start with `postmortem debug TARGET`.

The files beside this one become the package `postmortem_gdb`, since the directory's name `gdb` is taken; sys.path is
unchanged. No other part of postmortem runs here: a child in its own interpreter answers (engine.py).
"""

import sys
import types
from pathlib import Path

import gdb

HERE = Path(sys._getframe().f_code.co_filename).resolve().parent
NAME = "postmortem_gdb"


def main() -> None:
    """Load the commands, also again and from another installation."""
    if sys.version_info < (3, 8):  # noqa: UP036 - gdb's Python is not the one that postmortem was installed with
        raise gdb.GdbError("this gdb's Python is older than 3.8, which postmortem's commands need")
    before = sys.modules.get(NAME + ".engine")
    if before is not None:
        before.Engine.forget()
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]  # sourced again, possibly from another installation
    package = types.ModuleType(NAME)
    package.__path__ = [str(HERE)]
    sys.modules[NAME] = package
    from postmortem_gdb import commands  # noqa: PLC0415 - only now is it importable

    commands.register()


main()
