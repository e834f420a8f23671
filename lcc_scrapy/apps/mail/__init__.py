"""Mail: providers are told of errors, silence and full sets (decision 145)."""
