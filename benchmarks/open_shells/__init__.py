"""Unrestricted Kohn-Sham, radicals, ions and atoms, compared with PySCF and with tables."""
