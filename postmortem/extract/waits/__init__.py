"""What threads and tasks wait for: ``threadwaits`` from the system call, ``primitives`` and ``locks`` from the interpreter,
``nativelocks`` from the C library, ``awaits`` for tasks, ``endpoints`` for descriptors."""
