"""Molecules by name, and what the argument MOLECULE of a command means."""
