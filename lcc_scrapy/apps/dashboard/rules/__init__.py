"""The rules of the dashboard: what browsers show safely, and what somebody searches for."""
