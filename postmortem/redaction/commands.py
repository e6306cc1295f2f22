"""Redaction of command lines.

A word is a secret by the word before it (``--password X``, ``--token=X``, ``KEY=X``, ``-H "Authorization: X"``), by its
form (``https://ann:X@host``, a key of AWS or GitHub), or by the program that reads it (``mysql -pX``). The argument of
``-c`` is masked by its language: a shell's as a command line, Python's as source.

Masking too much is a nuisance, masking too little is a leak: in doubt a word is masked. Names of files that hold
secrets are not masked.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from .secrets import MASK, is_secret, secrets_in
from .sources import masked_lines

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?d?$")
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "su", "runuser"}


class _Letters(NamedTuple):
    """Options of one letter whose value is a password.

    - ``attached``: attached to it (``-pX``)
    - ``separate``: the next word (``-p X``)
    - ``user``: the part of the value behind a colon (``-u ann:X``) or ``%``
    """

    attached: str = ""
    separate: str = ""
    user: str = ""


_MYSQL = _Letters(attached="p")
_LOGIN = _Letters(attached="p", separate="p")
_HTTP = _Letters(attached="uU", separate="", user="uU")
#: Taken from the manuals of these programs.
_PROGRAMS: Dict[str, _Letters] = {
    **{f"{name}{what}": _MYSQL for name in ("mysql", "mariadb")
       for what in ("", "dump", "admin", "-dump", "-admin", "import", "-import", "show", "check", "slap", "pump", "sh")},
    **dict.fromkeys(("sshpass", "twine", "mongo", "mongosh", "mongodump", "mongorestore"), _LOGIN),
    "login": _LOGIN,  # docker login -u ann -p X, helm registry login, oc login, az login
    **dict.fromkeys(("curl",), _HTTP),
    "http": _Letters(attached="a", user="a"),
    "https": _Letters(attached="a", user="a"),
    "redis-cli": _Letters(separate="a"),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldapdelete"), _Letters("w", "w")),
    **dict.fromkeys(("smbclient", "rpcclient"), _Letters(attached="U", user="U")),
    **dict.fromkeys(("sqlcmd", "bcp", "ipmitool"), _Letters("P", "P")),
    **dict.fromkeys(("zip", "unzip"), _Letters("P", "P")),
    **dict.fromkeys(("7z", "7za", "7zr", "unrar", "rar"), _Letters("p")),
}  # fmt: skip
_HEADER = re.compile(r"([\w-]{1,100}):\s")
_PAIR = re.compile(r"(-{0,2}[\w.:-]{1,100}?)=")
_AT_HOST = re.compile(r"[^\s/@:=]{1,100}:([^\s/@]{1,200})@[\w\[]")
_SWITCH = re.compile(r"--?(?:no|ask|use|with|without|enable|disable|require|allow|skip|prompt|show|list|print)-")
_SHELL_WORD = re.compile(r"""\s+|(?:"[^"]*"?|'[^']*'?|[^\s"'])+""")
_SHORT = 2
_DEEPEST = 3

Seen = Callable[[str], None]


def _nobody(secret: str) -> None:
    """Ignore a secret."""


def masked_argv(words: Sequence[str], seen: Seen = _nobody) -> Tuple[str, ...]:
    """Return the same number of words with secrets masked; ``seen`` is called with each secret."""
    return tuple(_masked(words, seen, _DEEPEST))


def _masked(words: Sequence[str], seen: Seen, depth: int) -> List[str]:
    result: List[str] = []
    letters, program = _Letters(), ""
    value_of = ""  # what of the next word is secret: "" nothing, "user" what follows a name, "all"
    for index, word in enumerate(words):
        shown = _valued(word, value_of, seen)
        if shown is None:
            before = words[index - 1] if index else ""
            shown = _script(before, word, program, seen, depth) or _word(word, letters, seen)
        result.append(shown)
        value_of = _wants(word, letters) if shown == word else ""
        name = word.rsplit("/", 1)[-1]
        if name in _PROGRAMS:
            letters = _PROGRAMS[name]
        if name in _SHELLS or _PYTHON.match(name):
            program = name
    return result


def _valued(word: str, value_of: str, seen: Seen) -> str | None:
    """Mask the value of the option before; return None when that takes no secret, or the word is an option itself."""
    if not value_of or word.startswith("--") or (word.startswith("-") and len(word) <= _SHORT):
        return None
    return _user(word, seen) if value_of == "user" else _hide(word, seen)


def _wants(word: str, letters: _Letters) -> str:
    if word.startswith("-") and "=" not in word:
        if len(word) == _SHORT:
            return "all" if word[1] in letters.separate else "user" if word[1] in letters.user else ""
        if word.lstrip("-") in ("user", "proxy-user"):
            return "user"
        if is_secret(word) and not _SWITCH.match(word) and not _attached(word, letters):
            return "all"
    return ""


def _attached(word: str, letters: _Letters) -> bool:
    return word[:1] == "-" and word[1:2] not in ("", "-") and word[1] in letters.attached and len(word) > _SHORT


def _word(word: str, letters: _Letters, seen: Seen) -> str:
    if _attached(word, letters):
        if word[1] in letters.user:
            return word[:_SHORT] + _user(word[_SHORT:], seen)
        return word[:_SHORT] + _hide(word[_SHORT:], seen)
    header = _HEADER.match(word)
    if header is not None and is_secret(header.group(1)):
        return word[: header.end()] + _hide(word[header.end() :], seen)
    pair = _PAIR.match(word)
    if pair is not None and is_secret(pair.group(1)):
        return word[: pair.end()] + _hide(word[pair.end() :], seen)
    if pair is not None and pair.group(1).lstrip("-") in ("user", "proxy-user"):
        return word[: pair.end()] + _user(word[pair.end() :], seen)
    host = _AT_HOST.match(word)
    if host is not None and "://" not in word:
        return word[: host.start(1)] + _hide(host.group(1), seen) + word[host.end(1) :]
    return _text(word, seen)


def _script(option: str, word: str, program: str, seen: Seen, depth: int) -> str | None:
    """Mask the argument of an interpreter's ``-c``, which may end a cluster such as ``bash -ec``; None for other words."""
    if not program or not re.fullmatch(r"-[a-zA-Z]*c", option):
        return None
    if _PYTHON.match(program):
        return "\n".join(masked_lines(word.split("\n"), seen))
    if not depth:
        return _text(word, seen)
    parts = _SHELL_WORD.findall(word)
    places = [index for index, part in enumerate(parts) if not part.isspace()]
    quotes = [part[0] if len(part) > 1 and part[0] in "\"'" and part[-1] == part[0] else "" for part in parts]
    plain = [parts[index][1:-1] if quotes[index] else parts[index] for index in places]
    for index, part in zip(places, _masked(plain, seen, depth - 1)):
        parts[index] = f"{quotes[index]}{part}{quotes[index]}"
    return "".join(parts)


def _user(word: str, seen: Seen) -> str:
    """Mask the secret of ``ann:X`` and ``ann%X``; a name alone stays."""
    for sign in ":%":
        name, found, secret = word.partition(sign)
        if found and secret:
            return f"{name}{sign}{_hide(secret, seen)}"
    return word


def _hide(secret: str, seen: Seen) -> str:
    if secret and secret != MASK:
        seen(secret.strip("\"'"))
        return MASK
    return secret


def _text(word: str, seen: Seen) -> str:
    parts, at = [], 0
    for first, last in secrets_in(word):
        secret = word[first:last]
        parts += [word[at:first], MASK]
        at = last
        if secret != MASK:
            seen(secret.strip("\"'"))
            if ":" in secret and word[:first].endswith("://"):
                seen(secret.split(":", 1)[1])
    return "".join([*parts, word[at:]])
