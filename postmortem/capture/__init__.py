"""From a command or a process to a bundle. Capture reads and never judges.

options     the command line
run/        the command: started, waited for, ended; reasons to begin a capture
steps       one capture, step by step: look, watch, freeze, copy, release
procfs/     the kernel's files about the tree: processes, descriptors, sockets, control groups
observe/    what only time shows: counters, probes, samples of py-spy
freeze/     the stop: every thread halted, memory copied, cores written
roots       processes with another root directory or mount namespace
fallbacks   what can still be read of a process without a core
readers     the reader of processes, provided by the caller; isolation runs it in a child
"""
