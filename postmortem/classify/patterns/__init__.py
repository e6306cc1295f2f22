"""The patterns: a package for each family, a module for each pattern. Modules without ``PATTERN`` are helpers of a family.

locks      threads that wait for locks, conditions, pools and imports
asyncio    event loops and their tasks
gil        threads that compute, and the interpreter lock
io         descriptors, sockets, pipes, files, names, terminals
processes  children, pools of processes, processes held from outside
memory     the garbage collector, queues and exceptions that grow, too little memory
crashes    the ends of processes: faults, fatal errors, signals
"""
