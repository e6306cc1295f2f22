"""Attacks and mishaps on what postmortem does as root to the processes and files of others: each fails without its mend."""
