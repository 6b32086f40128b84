"""Exchange-correlation functionals of closed-shell densities, and dispersion corrections."""
