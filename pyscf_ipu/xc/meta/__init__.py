"""Functionals of the kinetic energy density."""
