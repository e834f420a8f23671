"""Where connections arrive: endpoints, TLS, PROXY protocol, peers, handed-over sockets.

No protocol of the LCC.
"""
