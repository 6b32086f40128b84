"""Derivatives of energies that are integrated on a grid."""
