"""The way to the lowest state: other guesses, stability of the orbitals, second-order descent."""
