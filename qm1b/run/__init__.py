"""A run from beginning to end."""
