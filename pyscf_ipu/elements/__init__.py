"""Data of a single element, in the end from PySCF: symbols, basis set, atomic grid, free atom."""
