"""Contents in object storage instead of files."""
