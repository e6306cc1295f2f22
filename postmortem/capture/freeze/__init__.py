"""The stop: all threads of a tree halted at once, their memory copied, cores written afterwards.

Read ``cores`` (the whole: prepare, stop, copy, let go, write), ``stop`` and ``ptrace`` (halting threads), ``pages`` and
``segments`` (which memory there is), ``rehearsal`` and ``selection`` (which of it a diagnosis will read), ``image``,
``memcopy`` and ``elfcore`` (copying and writing), ``kernelcore`` (a core by the kernel, where ptrace is refused).
"""
