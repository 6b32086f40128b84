"""Algorithms for a machine of a thousand small memories: quartet families, Jacobi rotations."""
