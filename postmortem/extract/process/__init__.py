"""One process: ``reading`` begins it, ``process`` reads threads and waits, ``summary`` makes the evidence of it."""
