"""What an instruction's text says of memory."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.arch.instructions import Operand, access_to, faulting_address, operands

REGISTERS = {"rax": 0x1000, "rdi": 0, "rsi": 0x2000, "rsp": 0x7000, "rbp": 0x7100, "rcx": 3, "fs_base": 0x9000}


@pytest.mark.parametrize(
    ("text", "access", "address"),
    [
        ("mov (%rdi),%rax", "read", 0),
        ("mov %rax,0x8(%rdi)", "write", 8),
        ("mov 0x60(%rax),%rax", "read", 0x1060),
        ("movzbl -0x1(%rax,%rcx,4),%edi", "read", 0x100B),
        ("cmpq $0x0,0xb0(%rdi)", "read", 0xB0),
        ("andb $0xef,0x20(%rax)", "write", 0x1020),
        ("lock cmpxchg %edx,(%rdi)", "write", 0),
        ("idivl (%rdi)", "read", 0),
        ("incl (%rdi)", "write", 0),
        ("vpcmpeqb (%rdi),%ymm16,%k0", "read", 0),
        ("vmovdqu8 %zmm16,(%rax){%k1}", "write", 0x1000),
        ("mov %fs:0x28,%rax", "read", 0x9028),
        ("mov 0x1234(%rip),%rax        # 0x5555 <counter>", "read", 0x5555),
        ("jmp *(%rax)", "read", 0x1000),
        ("push %rbx", "write", 0x6FF8),
        ("call 0x4005d0 <f@plt>", "write", 0x6FF8),
        ("ret", "read", 0x7000),
    ],
)
def test_an_operand_is_read_or_written(text: str, access: str, address: int) -> None:
    """The last one is where the result goes, but for those that have none; the address is base + index * scale + more."""
    assert list(operands(text, REGISTERS)) == [Operand(access, address)]
    assert access_to(address, text, REGISTERS) == access


@pytest.mark.parametrize(
    "text", ["lea (%rdi),%rax", "nopw 0x0(%rax,%rax,1)", "jmp 0x4005d0", "mov %rax,%rbx", "ud2", ""]
)
def test_what_touches_no_memory(text: str) -> None:
    """Computing an address, or going to one, is no access."""
    assert list(operands(text, REGISTERS)) == []
    assert access_to(0, text, REGISTERS) is None


@pytest.mark.parametrize(
    ("text", "address", "access"),
    [
        ("rep movsb %ds:(%rsi),%es:(%rdi)", 0x0, "write"),
        ("rep movsb %ds:(%rsi),%es:(%rdi)", 0x2000, "read"),
        ("rep movsb %ds:(%rsi),%es:(%rdi)", 0x5000, None),
        ("call *0xe0(%rax)", 0x6FF8, "write"),
        ("call *0xe0(%rax)", 0x10E0, "read"),
        ("push 0x8(%rdi)", 0x8, "read"),
    ],
)
def test_of_two_accesses_the_address_decides(text: str, address: int, access: Optional[str]) -> None:
    """One that belongs to neither leaves it open."""
    assert access_to(address, text, REGISTERS) == access


def test_an_address_that_nobody_can_have_is_the_one_that_failed() -> None:
    """The kernel tells no address of it; canonical ones are not taken for it."""
    assert faulting_address("mov 0x8(%rdi),%rax", {"rdi": 0x4141414141414141}) == 0x4141414141414149
    assert faulting_address("movaps %xmm0,(%rax)", REGISTERS) is None
    assert faulting_address("mov (%r15),%rax", REGISTERS) is None


@pytest.mark.parametrize(
    "text", ["%%% (((", "mov ((%rax)),,", "rep", "x" * 5000, "mov 010(%rax),%rbx", "mov 0x(%rax),%al"]
)
def test_no_text_is_too_odd(text: str) -> None:
    """gdb disassembles what a jump went astray into."""
    list(operands(text, REGISTERS))
