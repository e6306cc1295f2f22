"""Memory that fills up: the garbage collector, growing queues, kept exceptions, memory shortage."""
