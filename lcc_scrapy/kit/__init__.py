"""What apps share and the core does not need."""
