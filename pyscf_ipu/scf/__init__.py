"""One molecule, one self-consistent field: the Hamiltonian, the loop, the compiled program."""
