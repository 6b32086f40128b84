"""The way to the lowest state: stability of the orbitals, and second-order descent."""
