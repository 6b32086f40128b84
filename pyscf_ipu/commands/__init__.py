"""`pyscf-ipu rks`, `optimize` and `frequencies`: one molecule from the shell."""
