"""Whether a dataset is right: invariants of every row, and a comparison with PySCF."""
