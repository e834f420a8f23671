"""Simulated power cuts: a recorded run of the LCC is replayed onto a model of a disk, and cut anywhere.

``story`` is what is run and recorded, ``trace`` reads the record, ``disk`` knows what survives a cut,
``aftermath`` says whether the LCC kept its promises on what is left.
"""
