"""One molecule as a restricted Kohn-Sham problem: Hamiltonian, compiled program, batches."""
