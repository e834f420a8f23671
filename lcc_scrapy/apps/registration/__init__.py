"""The Registration Server (seed 003 section 3): site owners become providers by proving who they are.

``service`` does the steps, ``proof`` looks for the file, ``routes`` serves pages and the JSON API.
"""
