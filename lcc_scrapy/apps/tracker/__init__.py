"""The mirror tracker (seed 004): finds exact replicas of any directory by listings alone.

Adapters yield what a server lists, ``summing`` makes identities of it, ``loading`` makes rows of these.
"""
