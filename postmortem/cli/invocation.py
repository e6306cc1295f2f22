"""One command, from its arguments to its exit status."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn

import click

from .. import errors
from .targets import complain, defect


def invoke(commands: click.Group, argv: List[str], obj: object = None) -> int:
    """Run the command that ``argv`` (without the program's name) selects; return its exit status.

    Every foreseeable error is one sentence on stderr. ``obj``: click's ``Context.obj``.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the process that started this one
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the rest of the process
    try:
        # Not commands.main(): it turns a closed pipe into status 1, which has another meaning here.
        with commands.make_context("postmortem", argv, obj=obj) as context:
            status = commands.invoke(context)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except errors.PostmortemError as exc:
        complain(exc.sentence())
        return exc.status
    except BrokenPipeError:
        _leave_quietly()
    except (KeyboardInterrupt, click.Abort):
        return 130
    except OSError as exc:
        complain(f"{exc.filename or 'the system'}: {exc.strerror or exc}")
        return 1
    except Exception as exc:
        complain(defect(exc))
        return 1
    return status if isinstance(status, int) else 0


def _leave_quietly() -> NoReturn:
    """End the process after its output pipe was closed."""
    # The reader of the output (`| head`) has gone; flushing again would only raise another error.
    os._exit(141)
