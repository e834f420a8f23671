"""Messages between content users and the query socket, their writing and reading; standard library only.

Seed 003 section 9: "the query is sent to a socket as an XML stream, and the results are received as an XML
stream". The format is described in ``docs/query-protocol.md``.
"""
