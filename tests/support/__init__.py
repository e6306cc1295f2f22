"""What tests of several kinds share."""
