"""The patterns, a package a family and a module a pattern; modules without ``PATTERN`` hold what a family shares.

locks      threads that wait for locks, conditions, pools and imports
asyncio    event loops and their tasks
gil        threads that compute, and the interpreter lock
io         descriptors, sockets, pipes, files, names, terminals
processes  children, pools of processes, what holds a process from outside
memory     the garbage collector, queues and exceptions that grow, too little memory
crashes    what ended a process
"""
