"""postmortem: what a hung or crashed Python program waits for, and which line to change.

For programs: ``postmortem.analyze(target)`` returns a ``postmortem.Report``; docs/api.md shows how.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from .api import Report as Report
    from .api import analyze as analyze
    from .errors import NotABundle as NotABundle
    from .errors import NotACore as NotACore
    from .errors import PermissionRefused as PermissionRefused
    from .errors import PostmortemError as PostmortemError
    from .errors import TargetNotFound as TargetNotFound
    from .errors import ToolFailed as ToolFailed
    from .errors import ToolMissing as ToolMissing
    from .errors import UsageError as UsageError

__all__ = [
    "NotABundle", "NotACore", "PermissionRefused", "PostmortemError", "Report", "TargetNotFound", "ToolFailed",
    "ToolMissing", "UsageError", "__version__", "analyze",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name on first use: `capture` imports this module, and must start fast."""
    if name in ("Report", "analyze"):
        from . import api  # noqa: PLC0415

        return getattr(api, name)
    if name in __all__:
        from . import errors  # noqa: PLC0415

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
