"""SchNet beside that of PyTorch-Geometric."""
