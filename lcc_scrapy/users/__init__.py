"""The content users' side: what changed since my last visit."""
