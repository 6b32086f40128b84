"""Measurements of the project; how to run them: README.md."""
