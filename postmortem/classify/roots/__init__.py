"""The root of a hang: the first wait that nobody owes, or the code that runs, with the verdict that follows from its kind.

Patterns recognise known causes; this package answers for every program, also for those that no pattern recognises.

- ``walk``: the path from an agent along what others owe it, through event loops and into other processes, to its end
- ``rest``: agents that wait by design: an idle worker, a server between requests, a scheduler between jobs
- ``roots``: the root of each process: idle, progressing or waiting, and what it waits for
- ``floor``: the verdict that follows from the kind of a root, at most *possible* unless nothing can end the wait
"""
