"""Exchange-correlation functionals of closed shells and two spins, and dispersion corrections."""
