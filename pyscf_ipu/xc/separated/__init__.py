"""Functionals with another fraction of exact exchange at long range than at short range."""
