"""The rules of the LCC: no I/O, no clock, no framework. Time is always a parameter (epoch seconds).

It imports the standard library only.
"""
