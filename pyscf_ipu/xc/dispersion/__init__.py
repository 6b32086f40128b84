"""Corrections for London dispersion, on the host: energy and forces of a molecule."""
