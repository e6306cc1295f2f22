"""From a command or a process to a bundle. Capture reads and never judges.

options    the command line
run/       the command: started, waited for, ended; what makes a capture begin
steps      what happens once the time is up, in order: look, watch, freeze, copy, let go
procfs/    what the kernel's files say of the tree: processes, descriptors, sockets, control groups
observe/   what only time can show: counters, probes, samples of py-spy
freeze/    the stop: every thread halted, memory copied, cores written
roots      processes that see other files than we do
fallbacks  what is still to be had of a process without a core
readers    the reader of processes that the caller hands in; isolation runs it in a child
"""
