"""One process.

context, threadtable  what every pass is given
reading, process      the passes, in their order: tasks, threads and their waits, holders
waiting, threads      what each thread waits for, and the evidence of it
summary               what needs the native stacks, and the process as evidence
"""
