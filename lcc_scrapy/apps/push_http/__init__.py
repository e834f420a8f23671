"""Pushes over HTTP: ``POST /v1/push`` is one conversation with the UNS."""
