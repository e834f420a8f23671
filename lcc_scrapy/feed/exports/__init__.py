"""Exports: documents with their contents in one file, streamed, and a manifest of everything.

A format is a class with four verbs (``Export``) and one line in ``formats.FORMATS``.
"""
