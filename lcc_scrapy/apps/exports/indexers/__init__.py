"""Indexers: programs and libraries that make the documents of an LCC searchable (seed 000 section 6).

Two kinds of adapters. A *stream* (``exports.interface.Export``) writes what a program reads on its
stdin. An *index* (``interface.Index``) takes changes itself and keeps the cursor with them. They are examples
of those two interfaces; nothing else knows them but the table in ``formats.py``.
"""
