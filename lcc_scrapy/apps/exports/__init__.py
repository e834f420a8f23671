"""Exports: documents with their contents in one file, streamed, and a manifest of everything; and indexers.

A format is a class with four verbs (``interface.Export``) and one line in ``formats.FORMATS``.
"""
