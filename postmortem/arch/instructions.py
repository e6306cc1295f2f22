"""Memory accesses of an x86-64 instruction, derived from its disassembly in AT&T syntax.

The last operand is the destination; ``disp(base,index,scale)`` is memory.

Sources: Intel SDM, volume 2; GNU as, "i386-Memory".
"""

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
#: Instructions that read their last operand instead of writing to it.
_ONLY_READ = re.compile(
    r"(v?u?comis[sd]|cmp[bwlq]?|test[bwlq]?|v?ptest|vtestp[sd]|bt[wlq]?|k?ortest\w*|ktest\w*|cmps[bwlq]?|scas[bwlq]?|lods[bwlq]?"
    r"|i?mul[bwlq]?|i?div[bwlq]?|f(i?ld|i?add|i?sub|i?mul|i?div|i?com)\w*|ldmxcsr|vldmxcsr|fxrstor\w*|xrstor\w*|out\w*"
    r"|j\w+|push[bwlq]?|call[wlq]?)$"
)
_NO_ACCESS = re.compile(r"(lea[wlq]?|nop[wlq]?|prefetch\w*|endbr\w*|cldemote)$")
#: Instructions that also write to, or read from, the stack.
_PUSHES, _POPS = re.compile(r"(push\w*|call[wlq]?|enter\w*)$"), re.compile(r"(pop\w*|ret[wlq]?|leave[wlq]?|iret\w*)$")
_WORD = (1 << 64) - 1
#: Widest access of one operand, in bytes.
_NEAR = 64


class Operand(NamedTuple):
    """A memory access of an instruction; ``address`` is None if one of its registers is unknown."""

    access: str  # "read" | "write"
    address: Optional[int]


def operands(text: str, registers: Mapping[str, int]) -> Iterator[Operand]:
    """Yield every memory access of an instruction; the implicit stack access comes last."""
    name, arguments = _split(text)
    if not name or _NO_ACCESS.match(name):
        return
    for index, argument in enumerate(arguments):
        match = _MEMORY.match(argument)
        if match is None or not argument or (argument.startswith(("%", "$")) and match["segment"] is None):
            continue
        if name.startswith(("j", "call")) and not argument.startswith("*"):
            continue  # a branch target, not a memory operand
        last = index == len(arguments) - 1
        yield Operand("write" if last and not _ONLY_READ.match(name) else "read", _address(match, registers, text))
    top = registers.get("rsp")
    if _PUSHES.match(name):
        yield Operand("write", (top - 8) & _WORD if top is not None else None)
    if _POPS.match(name):
        yield Operand("read", registers.get("rbp") if name.startswith("leave") else top)


def access_to(address: Optional[int], text: str, registers: Mapping[str, int]) -> Optional[str]:
    """Return how an instruction was about to access an address: "read", "write", or None if ambiguous."""
    found = list(operands(text, registers))
    if len({operand.access for operand in found}) == 1:
        return found[0].access
    # An operand may be 64 bytes wide and cross into an inaccessible page: match any address within it.
    near = [o for o in found if address is not None and o.address is not None and 0 <= address - o.address < _NEAR]
    return near[0].access if len({operand.access for operand in near}) == 1 else None


def faulting_address(text: str, registers: Mapping[str, int]) -> Optional[int]:
    """Return the first non-canonical address that an instruction touches; None if there is none.

    The kernel does not report such an address: it raises a general protection fault without one.
    """
    wrong = [o.address for o in operands(text, registers) if o.address is not None and not _is_canonical(o.address)]
    return wrong[0] if wrong else None


def _is_canonical(address: int) -> bool:
    """Return whether bits 47 to 63 of an address are equal."""
    return address >> 47 in (0, (1 << 17) - 1)


def _split(text: str) -> Tuple[str, Tuple[str, ...]]:
    """Return (mnemonic, operands), stripped of prefixes, comments, symbols and AVX-512 masks."""
    plain = re.sub(r"\{[^}]*\}|<[^>]*>|#.*", "", text)
    words = plain.split()
    while words and words[0] in _PREFIXES:
        del words[0]
    if not words:
        return "", ()
    rest = "".join(words[1:])
    return words[0], tuple(re.split(r",(?![^(]*\))", rest)) if rest else ()


def _address(match: re.Match[str], registers: Mapping[str, int], text: str) -> Optional[int]:
    """Compute the address of a memory operand; None if a register that it needs is unknown."""
    displacement = match["displacement"] or "0"
    total = int(displacement, 16 if "x" in displacement else 10)
    if match["segment"] == "fs":
        if "fs_base" not in registers:
            return None
        total += registers["fs_base"]
    elif match["segment"] == "gs" or match["base"] == "%rip":
        # %rip: gdb prints the resulting address after a "#"; %gs: its base is not known
        told = re.search(r"#\s*(0x[0-9a-f]+)", text)
        return int(told[1], 16) if told and match["base"] == "%rip" else None
    for part, factor in ((match["base"], 1), (match["index"], int(match["scale"] or 1))):
        if part is None or part in ("%riz", "%eiz"):
            continue
        if part[1:] not in registers:
            return None
        total += registers[part[1:]] * factor
    return total & _WORD
