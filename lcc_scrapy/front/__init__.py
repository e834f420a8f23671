"""LCC multiplexing (seed 003 section 12): several sub-LCCs behind one front.

It knows which sub-LCC has which provider, and nothing of their documents.
"""
