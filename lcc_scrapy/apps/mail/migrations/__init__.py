"""The revisions of this app's tables."""
