"""Cores and raw facts → evidence. Nothing is judged here, nothing of the target is executed.

assemble/       one core, the processes of a tree, a whole bundle
recorded/       what the capture wrote beside the cores
process/        one process: its threads, its interpreter, the whole of it
waits/          what threads and tasks wait for
ownership/      who holds it, and who could end the wait
cross_process/  what ties processes together
sourcecode/     what the program's sources say
"""
