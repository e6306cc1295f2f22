"""Memory that fills up: the collector, growing queues, kept exceptions, too little of it."""
