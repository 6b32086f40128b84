"""Auxiliary basis sets for density fitting: PySCF's choice, and their form as tables."""
