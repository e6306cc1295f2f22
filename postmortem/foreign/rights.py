"""The rights of another user to read files.

A root process that opens a file for another user must not read what that user cannot. The file system ids (setfsuid(2),
setfsgid(2)) and the supplementary groups decide that, once the overriding capabilities are dropped. The real, effective
and saved ids remain root's: after setresuid(2) the other user could signal and trace the reader (kill(2), ptrace(2)),
and forge its answers.

Sources: credentials(7), capabilities(7), capset(2), prctl(2); include/uapi/linux/capability.h (version 3: two words a
set).
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

_VERSION_3 = 0x20080522
_PR_SET_NO_NEW_PRIVS = 38
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1 << 1, 1 << 2
_NOBODY = 0xFFFFFFFF  # no valid id: setfsuid(2) then only returns the current one
_LIBC = ctypes.CDLL(None, use_errno=True)


class Rights(NamedTuple):
    """The ids that decide what can be read.

    ``reads_all``: root's, with a capability to read and search everything (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE).
    """

    uid: int
    gid: int
    groups: Tuple[int, ...] = ()
    reads_all: bool = False


def of_status(status: Dict[str, str]) -> Optional[Rights]:
    """Return the rights of a process from its /proc/PID/status.

    None if unknown, or where its real, effective, saved and file system ids differ: a set-user-id program acts for one
    user with the rights of another.
    """
    try:
        uids = {int(word) for word in status["Uid"].split()}
        gids = {int(word) for word in status["Gid"].split()}
        groups = tuple(int(word) for word in status.get("Groups", "").split())
    except (KeyError, ValueError):
        return None
    return Rights(uids.pop(), gids.pop(), groups) if len(uids) == 1 and len(gids) == 1 else None


def overrides(status: Dict[str, str]) -> bool:
    """Return whether a root process can read everything in its own user namespace, which the caller compares."""
    try:
        return int(status["CapEff"], 16) & (_CAP_DAC_OVERRIDE | _CAP_DAC_READ_SEARCH) != 0
    except (KeyError, ValueError):
        return False


def of_user(uid: int) -> Rights:
    """Return a user's rights from the user database; of an unknown user, those of the bare id."""
    import pwd  # noqa: PLC0415 - seldom needed

    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return Rights(uid, uid)
    return Rights(uid, known.pw_gid, tuple(os.getgrouplist(known.pw_name, known.pw_gid)))


def of_json(value: Any) -> Optional[Rights]:
    """Parse the result of ``as_json``; None for anything else."""
    ids: List[int] = [i for i in value if type(i) is int and 0 <= i < _NOBODY] if isinstance(value, list) else []
    if len(ids) < 2 or len(ids) != len(value):
        return None
    return Rights(ids[0], ids[1], tuple(ids[2:]))


def as_json(rights: Optional[Rights]) -> Optional[List[int]]:
    """Return a list of user, group and supplementary groups."""
    return [rights.uid, rights.gid, *rights.groups] if rights is not None else None


def take(rights: Rights) -> None:
    """Read files as this user from now on, for good; to be called in a child.

    Only root can; for other users their capabilities are dropped, and they read as themselves. Raises OSError when the
    kernel refuses; nothing may be read then.
    """
    if os.geteuid() != 0:
        _give_up_capabilities()
        return
    libc = _LIBC
    if set(os.getgroups()) != set(rights.groups):  # without CAP_SETGID a container's root can read for itself
        os.setgroups(list(rights.groups))
    libc.setfsgid(ctypes.c_uint(rights.gid))
    libc.setfsuid(ctypes.c_uint(rights.uid))
    in_force = (libc.setfsuid(ctypes.c_uint(_NOBODY)) & _NOBODY, libc.setfsgid(ctypes.c_uint(_NOBODY)) & _NOBODY)
    if in_force != (rights.uid, rights.gid):
        raise PermissionError("the kernel kept the file system's ids")
    if not (rights.reads_all and rights.uid == 0 and _keep(_CAP_DAC_READ_SEARCH) == 0):
        _give_up_capabilities()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _give_up_capabilities() -> None:
    code = _keep(0)
    if code:
        raise OSError(code, os.strerror(code))


def _keep(capabilities: int) -> int:
    """Drop all other capabilities; return 0, or the errno."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _VERSION_3, 0))
    sets = ctypes.create_string_buffer(struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0), 24)
    return 0 if _LIBC.capset(header, sets) == 0 else ctypes.get_errno()
