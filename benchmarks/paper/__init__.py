"""The figures of the QM1B paper (arXiv:2311.01135), made again from conformers computed here."""
