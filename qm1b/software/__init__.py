"""Which software computes: versions of packages, and one hash of this project's code."""
