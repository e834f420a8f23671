"""The annotation engine (seed 002 section 6): whom a cached document concerns, and how they are told."""
