"""The self-consistent field of any Fock matrix: the loop, its coarse cycles, and DIIS."""
