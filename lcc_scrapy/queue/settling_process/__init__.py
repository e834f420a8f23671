"""Settling in a process of its own: what a crawl and that process say to each other, and both ends of it."""
