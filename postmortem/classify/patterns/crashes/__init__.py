"""What ended a process: signals, the allocator, the interpreter itself, a stack used up."""
