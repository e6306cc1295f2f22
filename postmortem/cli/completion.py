"""Shell completion: ``postmortem completion SHELL`` prints the lines that enable it.

These lines call ``postmortem completion SHELL -- WORDS``, with the words of the line up to the cursor. The answer has one
line per offer: kind, value and help, separated by tabs. Kinds:

- ``plain``: the value itself;
- ``file``: the shell's own completion of file names;
- ``command``: from the word of this number on, the line is a separate command (``capture … -- git pu``).
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from .table import Command, Option, table

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_postmortem() {
    local IFS=$'\\n' line kind value
    COMPREPLY=()
    for line in $("$1" completion bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null); do
        IFS=$'\\t' read -r kind value _ <<< "$line"
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) compopt -o filenames; COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}")) ;;
            command)
                if declare -F _command_offset >/dev/null; then
                    IFS=$' \\t\\n'; _command_offset "$value"
                elif (( COMP_CWORD == value )); then
                    COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
                else
                    compopt -o filenames; COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
                fi ;;
        esac
    done
}
complete -F _postmortem postmortem
"""
_ZSH = """\
#compdef postmortem
_postmortem() {
    local line kind value help
    local -a offers
    for line in "${(@f)$("${words[1]}" completion zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
        IFS=$'\\t' read -r kind value help <<< "$line"
        case $kind in
            plain) offers+=("${value//:/\\\\:}:$help") ;;
            file) _files ;;
            command) shift "$value" words; (( CURRENT -= value )); _normal ;;
        esac
    done
    (( $#offers )) && _describe -V postmortem offers
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _postmortem "$@"
else
    compdef _postmortem postmortem
fi
"""
_FISH = """\
function __postmortem
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $before[1] completion fish -- $before $current 2>/dev/null)
        set -l offer (string split \\t -- $line)
        switch $offer[1]
            case plain
                printf '%s\\t%s\\n' $offer[2] $offer[3]
            case file
                __fish_complete_path $current
            case command
                set -l rest $before[(math $offer[2] + 1)..-1]
                complete -C (string join ' ' -- (string escape -- $rest) $current)
        end
    end
end
complete --command postmortem --no-files --arguments '(__postmortem)'
"""


class Offer(NamedTuple):
    """A completion offered to the shell."""

    value: str
    help: str = ""
    kind: str = "plain"


_FILE = Offer("", kind="file")


def script(shell: str) -> str:
    """Return the code that enables completion in a shell."""
    return {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell]


def answer(group: Any, words: Sequence[str]) -> str:
    """Return the offers for the last of the words after ``--``, as lines.

    The last word may be empty; the first is the program's name.
    """
    found = offers(group, list(words[words[:1] == ("--",) :]))
    return "\n".join("\t".join((offer.kind, offer.value, offer.help.replace("\n", " "))) for offer in found)


def offers(group: Any, words: List[str]) -> List[Offer]:
    """Return the offers for the last word."""
    before, current = words[1:-1], words[-1]
    known = table(group)
    if not before:
        names = [Offer(command.name, command.summary) for command in known.values()]
        return _beginning([*names, Offer("--help"), Offer("--version")], current)
    command = known.get(before[0])
    if command is None:
        return []
    wanting, place = _state(command, before[1:])
    if place is not None:
        return [Offer(str(place + 2), kind="command")]  # after the names of the program and the command
    if wanting is not None:
        return _values(wanting, current[1:] if current == "=" else current, "")
    if current.startswith("--") and "=" in current:
        flag, _, value = current.partition("=")
        option = _named(command, flag)
        return _values(option, value, f"{flag}=") if option is not None and option.metavar else []
    if current.startswith("-") and "--" not in before:
        listed = [Offer(flag, option.help) for option in command.options for flag in option.flags]
        return _beginning(listed, current)
    if command.name == "capture":
        return [Offer(str(len(words) - 1), kind="command")]
    return _arguments(command, current)


def _state(command: Command, words: List[str]) -> Tuple[Optional[Option], Optional[int]]:
    """Return (the option whose value comes next, for ``capture`` the index of the word where its command begins)."""
    wanting: Optional[Option] = None
    for index, word in enumerate(words):
        if word == "=" and wanting is not None:
            continue  # bash splits `--format=json` into three words
        if wanting is not None:
            wanting = None
        elif word == "--":
            return None, index + 1 if command.name == "capture" else None
        elif word.startswith("-"):
            option = _named(command, word)
            wanting = option if option is not None and option.metavar else None
        elif command.name == "capture":
            return None, index
    return wanting, None


def _named(command: Command, flag: str) -> Optional[Option]:
    return next((option for option in command.options if flag in option.flags), None)


def _values(option: Option, current: str, prefix: str) -> List[Offer]:
    if option.choices:
        return [Offer(prefix + choice) for choice in option.choices if choice.startswith(current)]
    return [_FILE] if option.takes_file and not prefix else []


def _arguments(command: Command, current: str) -> List[Offer]:
    if command.name == "patterns":
        from ..classify.engine import all_patterns  # noqa: PLC0415 - imports two hundred modules

        return _beginning([Offer(pattern.id, pattern.title) for pattern in all_patterns()], current)
    if command.name == "demo":
        from ..demo import cases  # noqa: PLC0415

        return _beginning([Offer(case.name, case.title) for case in cases()], current)
    if command.name == "completion":
        return _beginning([Offer(shell) for shell in SHELLS], current)
    return [_FILE] if command.arguments else []


def _beginning(found: List[Offer], current: str) -> List[Offer]:
    return [offer for offer in found if offer.value.startswith(current)]
