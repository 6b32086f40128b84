"""Molecules in memory, and the number that is learned of each."""
