"""The self-consistent field of any Fock matrix: the loop, DIIS, and the way to the lowest state."""
