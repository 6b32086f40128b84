"""What people look for here under other names, and what there is in its place."""

from pyscf_ipu.base.nearest import explaining
from pyscf_ipu.settings.keywords import MISTAKES, OPEN_SHELL

_FORCES = "pi.forces(molecule) gives -dE/dR, rks(..., forces=True) energies and forces"
_SECOND = "pi.frequencies(molecule) has second derivatives, from differences of forces"
_MOLECULE = "pi.Molecule holds one; its from_smiles, from_xyz, from_pyscf and others read them"

NAMES = {
    **dict.fromkeys(("uhf", "UKS", "UHF"), OPEN_SHELL),
    **dict.fromkeys(("roks", "rohf", "gks"), "pi.uks computes open shells, unrestricted"),
    **dict.fromkeys(("hessian", "vibrations", "thermo", "ir"), _SECOND),
    **dict.fromkeys(("grad", "gradients"), _FORCES),
    **dict.fromkeys(("Mole", "mol", "gto", "Atoms"), _MOLECULE),
    **dict.fromkeys(("rhf", "RHF", "hf"), "pi.rks(molecule, xc='hf') is Hartree-Fock"),
    **dict.fromkeys(("dft", "energy", "kernel", "run"), "pi.rks(molecule) gives energies"),
    "RKS": "pyscf_ipu.interop.RKS is PySCF's class with this SCF, pi.rks the function",
    **dict.fromkeys(("relax", "geomopt", "minimize"), "pi.optimize(molecule) finds a minimum"),
    **dict.fromkeys(("md", "dynamics"), "ASE's dynamics run with pi.Calculator()"),
    **dict.fromkeys(
        ("tddft", "tdscf", "mp2", "ccsd", "solvent"),
        "not computed here; PySCF's own run on pyscf_ipu.interop.RKS(mole).run().to_pyscf()",
    ),
}
"""Names that `pyscf_ipu` does not have, and what to use."""

KEYWORDS = {
    **MISTAKES,
    **dict.fromkeys(
        ("fmax", "force_limit"),
        "pi.optimize takes max_force_hartree_per_bohr=; 0.05 eV/Angstrom are 1e-3 of it",
    ),
    **dict.fromkeys(("steps", "nsteps"), "pi.optimize takes max_steps="),
    **dict.fromkeys(("gradient", "grad", "gradients"), _FORCES),
    **dict.fromkeys(("hessian", "frequencies"), _SECOND),
    **dict.fromkeys(("atom", "smiles", "mol", "unit"), _MOLECULE),
}
"""Keywords that the functions of `pyscf_ipu` do not have, and what to give."""

explains_keywords = explaining(
    KEYWORDS, {"Settings": "solver=pyscf_ipu.Solver(settings)", "Solver": "solver=..."}
)
"""Decorates a function whose TypeError for a wrong argument says what to give."""
