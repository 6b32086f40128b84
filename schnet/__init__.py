"""SchNet trained on datasets of `qm1b` and others: the `schnet` command, and what it is made of.

`folder.RunFolder(path).predictor()` opens a run; `sources.open_source` reads molecules.
"""
