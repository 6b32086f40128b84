"""The only unit constants of the project (CODATA 2018).

Everything inside the packages is in atomic units (Hartree, Bohr, e); these constants are used where
numbers enter (Angstrom files, RDKit) and leave (electronvolt columns of a dataset).
"""

HARTREE_TO_EV = 27.211386245988
"""Electronvolts in one Hartree."""

BOHR_TO_ANGSTROM = 0.529177210903
"""Angstroms in one Bohr; divide by it to go from Angstrom to Bohr."""

E_BOHR_TO_DEBYE = 2.541746473
"""Debye in one e Bohr."""

FORCE_TO_EV_PER_ANGSTROM = HARTREE_TO_EV / BOHR_TO_ANGSTROM
"""Electronvolts per Angstrom in one Hartree per Bohr."""

FORCE_TO_MEV_PER_ANGSTROM = 1e3 * HARTREE_TO_EV / BOHR_TO_ANGSTROM
"""The same in millielectronvolts."""
