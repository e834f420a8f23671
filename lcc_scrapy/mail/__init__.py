"""Mail: one message to one address over the operator's mail server.

It does not know what is written, nor to whom: a subscriber ends it by the link in a mail.
"""
