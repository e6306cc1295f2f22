"""What an x86-64 instruction does to memory, as far as its text in AT&T's notation tells: the last operand is where the
result goes, ``disp(base,index,scale)`` is memory (Intel SDM, volume 2; GNU as, "i386-Memory")."""

from __future__ import annotations

import re
from typing import Iterator, Mapping, NamedTuple, Optional, Tuple

_PREFIXES = {
    "rep", "repz", "repe", "repnz", "repne", "lock", "bnd", "notrack", "data16", "addr32", "cs", "ds", "es", "ss",
    "xacquire", "xrelease",
}  # fmt: skip
_MEMORY = re.compile(
    r"\*?(?:%(?P<segment>[c-gs]s):)?(?P<displacement>-?(?:0x[0-9a-f]+|\d+))?"
    r"(?:\((?P<base>%\w+)?(?:,(?P<index>%\w+)?(?:,(?P<scale>[1248]))?)?\))?$"
)
#: Their last operand is read, as the others are.
_ONLY_READ = re.compile(
    r"(v?u?comis[sd]|cmp[bwlq]?|test[bwlq]?|v?ptest|vtestp[sd]|bt[wlq]?|k?ortest\w*|ktest\w*|cmps[bwlq]?|scas[bwlq]?|lods[bwlq]?"
    r"|i?mul[bwlq]?|i?div[bwlq]?|f(i?ld|i?add|i?sub|i?mul|i?div|i?com)\w*|ldmxcsr|vldmxcsr|fxrstor\w*|xrstor\w*|out\w*"
    r"|j\w+|push[bwlq]?|call[wlq]?)$"
)
_NO_ACCESS = re.compile(r"(lea[wlq]?|nop[wlq]?|prefetch\w*|endbr\w*|cldemote)$")
#: They write to the stack, or read from it, beside what their operand says.
_PUSHES, _POPS = re.compile(r"(push\w*|call[wlq]?|enter\w*)$"), re.compile(r"(pop\w*|ret[wlq]?|leave[wlq]?|iret\w*)$")
_WORD = (1 << 64) - 1
#: As near to the stack pointer: what pushes and pops touch.
_NEAR = 64


class Operand(NamedTuple):
    """Memory that an instruction touches. ``address``: None when a register of it is not known."""

    access: str  # "read" | "write"
    address: Optional[int]


def operands(text: str, registers: Mapping[str, int]) -> Iterator[Operand]:
    """Every access of an instruction, one that goes through the stack pointer last."""
    name, arguments = _split(text)
    if not name or _NO_ACCESS.match(name):
        return
    for index, argument in enumerate(arguments):
        match = _MEMORY.match(argument)
        if match is None or not argument or (argument.startswith(("%", "$")) and match["segment"] is None):
            continue
        if name.startswith(("j", "call")) and not argument.startswith("*"):
            continue  # an address to go to
        last = index == len(arguments) - 1
        yield Operand("write" if last and not _ONLY_READ.match(name) else "read", _address(match, registers, text))
    top = registers.get("rsp")
    if _PUSHES.match(name):
        yield Operand("write", (top - 8) & _WORD if top is not None else None)
    if _POPS.match(name):
        yield Operand("read", registers.get("rbp") if name.startswith("leave") else top)


def access_to(address: Optional[int], text: str, registers: Mapping[str, int]) -> Optional[str]:
    """How an instruction was about to access an address: "read", "write", or None where that cannot be told."""
    found = list(operands(text, registers))
    if len({operand.access for operand in found}) == 1:
        return found[0].access
    # An operand may be as wide as 64 bytes, of which the second half alone may be out of reach.
    near = [o for o in found if address is not None and o.address is not None and 0 <= address - o.address < _NEAR]
    return near[0].access if len({operand.access for operand in near}) == 1 else None


def faulting_address(text: str, registers: Mapping[str, int]) -> Optional[int]:
    """The address that no program can have (it is not canonical) among those that an instruction touches: the kernel
    does not tell it. None when there is none."""
    wrong = [o.address for o in operands(text, registers) if o.address is not None and not _is_canonical(o.address)]
    return wrong[0] if wrong else None


def _is_canonical(address: int) -> bool:
    return address >> 47 in (0, (1 << 17) - 1)


def _split(text: str) -> Tuple[str, Tuple[str, ...]]:
    """(mnemonic, operands) without prefixes, comments, symbols and the masks of AVX-512."""
    plain = re.sub(r"\{[^}]*\}|<[^>]*>|#.*", "", text)
    words = plain.split()
    while words and words[0] in _PREFIXES:
        del words[0]
    if not words:
        return "", ()
    rest = "".join(words[1:])
    return words[0], tuple(re.split(r",(?![^(]*\))", rest)) if rest else ()


def _address(match: re.Match[str], registers: Mapping[str, int], text: str) -> Optional[int]:
    displacement = match["displacement"] or "0"
    total = int(displacement, 16 if "x" in displacement else 10)
    if match["segment"] == "fs":
        if "fs_base" not in registers:
            return None
        total += registers["fs_base"]
    elif match["segment"] == "gs" or match["base"] == "%rip":
        # relative to the next instruction: gdb writes where that is behind a "#"
        told = re.search(r"#\s*(0x[0-9a-f]+)", text)
        return int(told[1], 16) if told and match["base"] == "%rip" else None
    for part, factor in ((match["base"], 1), (match["index"], int(match["scale"] or 1))):
        if part is None or part in ("%riz", "%eiz"):
            continue
        if part[1:] not in registers:
            return None
        total += registers[part[1:]] * factor
    return total & _WORD
