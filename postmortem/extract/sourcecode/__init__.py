"""What the program's own sources say: plain syntax, nothing of it is executed."""
