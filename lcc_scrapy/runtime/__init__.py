"""What every process of the LCC stands on: which apps there are."""
