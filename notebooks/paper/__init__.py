"""Figures of the QM1B paper (arXiv:2311.01135): those of a notebook, which has no checkout."""
