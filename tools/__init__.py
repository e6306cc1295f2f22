"""What `make` runs for contributors; no part of the package."""
