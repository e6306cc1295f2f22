"""Side by side with other tools; run by hand."""
