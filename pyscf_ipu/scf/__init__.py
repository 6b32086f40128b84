"""The self-consistent field of any Fock matrix: the loop, its rough cycles, and DIIS."""
