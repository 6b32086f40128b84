"""Density fitting: three-index integrals, the fitted Coulomb and exchange matrices."""
