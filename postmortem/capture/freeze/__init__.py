"""The freeze: every thread of a tree stopped at once, its memory copied, cores written afterwards.

Read in this order:
- ``cores``: the whole sequence (prepare, stop, copy, release, write); ``moment``: the part during the stop
- ``stop``, ``ptrace``: stopping threads; ``refusal``: why ptrace is refused
- ``pages``, ``segments``: which memory exists, and what of it goes into a core
- ``rehearsal``, ``selection``: which pages a diagnosis will read
- ``image``, ``memcopy``, ``vmread``, ``elfcore``: copying memory and writing the core; ``memorybudget``: limits
- ``programs``: copies of executables that were deleted
- ``kernelcore``, ``corepattern``: a core written by the kernel, where ptrace is refused
"""
