"""Mail: one message to one address over the operator's mail server.

It knows no providers; what is written to them is in modules of its own.
"""
