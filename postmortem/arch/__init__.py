"""CPU-specific knowledge: registers, system-call numbers, signals and instructions.

Modules:
- ``registersets``: registers in the notes of a core.
- ``registers``: registers in ptrace's register sets and in /proc/PID/syscall.
- ``syscalls``: names of system calls by number.
- ``siginfo``: signals and faults.
- ``instructions``: memory accesses of an x86-64 instruction.
"""
