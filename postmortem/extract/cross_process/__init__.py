"""Relations between processes: forks, shared semaphores, process pools and the other ends of pipes."""
