"""The figures of the QM1B paper that train or take long; others are in notebooks/paper."""
