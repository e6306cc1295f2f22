"""What ties processes together: forks, shared semaphores, pools of processes, the other ends of pipes."""
