"""PySCF in float64 as the reference."""
