"""Facts from the program's sources: syntax only, nothing is run."""
