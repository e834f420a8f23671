"""Renaming: a root of a provider gets another URL, and nothing is fetched again."""
