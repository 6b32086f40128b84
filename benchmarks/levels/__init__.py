"""Levels of theory that people train on, compared with other programs."""
