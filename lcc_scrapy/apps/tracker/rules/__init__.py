"""The rules of the mirror tracker: values and decisions, without I/O."""
