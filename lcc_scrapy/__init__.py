"""LCC, the Local Content Cache: keep local copies of other people's content fresh without polling."""

__version__ = "0.1.0"
