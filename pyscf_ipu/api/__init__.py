"""The functions that users call: energies, forces, minima, frequencies, derivatives."""
