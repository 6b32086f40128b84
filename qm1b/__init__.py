"""qm1b: from a file of SMILES to a dataset of Kohn-Sham energies, orbital energies and gaps.

    python -m qm1b.cli generate molecules.smi --out data/mine --conformers 10

Everything here is host code (files, RDKit, processes); the physics is `pyscf_ipu`, which only the
compute workers run.  Importing this package imports neither.
"""
