"""What differs between CPUs: registers, system-call numbers, signals and instructions.

Read ``registersets`` (registers in a core's notes), ``registers`` (in ptrace's sets and /proc/PID/syscall), ``syscalls``
(names by number), ``siginfo`` (signals and faults), ``instructions`` (what an x86-64 instruction does to memory).
"""
