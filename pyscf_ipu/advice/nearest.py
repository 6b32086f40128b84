"""What is not there, and what is nearest to it: public names, keywords, kinds of molecules."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TypeVar, cast, get_args, get_type_hints

Explained = TypeVar("Explained", bound=Callable)

_OPEN_SHELL = "only closed shells are computed; pyscf.dft.UKS computes open ones"
_FORCES = "pi.forces(molecule) gives -dE/dR, rks(..., forces=True) energies and forces"
_SECOND = "pi.frequencies(molecule) has second derivatives, from differences of forces"
_MOLECULE = "pi.Molecule holds one; its from_smiles, from_xyz, from_pyscf and others read them"
_GRID = "give grid_level=, 0 to 9"
_CYCLES = "give max_cycles="
_THRESHOLD = "the thresholds belong to the precision: precision='float64' has the tightest"
_FITTED = "give jk='ri'; the auxiliary basis is PySCF's default"
_FUNCTIONAL = "give the functional as xc="

NAMES = {
    **dict.fromkeys(("uks", "uhf", "UKS", "UHF", "roks", "rohf", "gks"), _OPEN_SHELL),
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
    "charge": "the charge belongs to the molecule: Molecule(..., charge=1)",
    **dict.fromkeys(("spin", "multiplicity", "nelectron", "unrestricted"), _OPEN_SHELL),
    **dict.fromkeys(
        ("solvent", "eps", "pcm"),
        "there is no solvent model; pyscf.dft.RKS(mole).PCM() computes one",
    ),
    **dict.fromkeys(
        ("disp", "dispersion", "d3", "d4"),
        "the dispersion correction belongs to the functional's name: xc='b3lyp-d3bj'",
    ),
    **dict.fromkeys(("functional", "method", "dft"), _FUNCTIONAL),
    **dict.fromkeys(("grid", "grids", "level"), _GRID),
    **dict.fromkeys(("max_cycle", "max_iter", "maxiter", "max_iterations"), _CYCLES),
    **dict.fromkeys(("conv_tol", "tol", "threshold", "conv_tol_grad"), _THRESHOLD),
    **dict.fromkeys(("auxbasis", "density_fit", "df", "ri"), _FITTED),
    **dict.fromkeys(("dtype", "double"), "give precision=: 'float32', 'mixed' or 'float64'"),
    **dict.fromkeys(
        ("fmax", "force_limit"),
        "pi.optimize takes max_force_hartree_per_bohr=; 0.05 eV/Angstrom are 1e-3 of it",
    ),
    **dict.fromkeys(("steps", "nsteps"), "pi.optimize takes max_steps="),
    "cartesian": "give cart=True",
    "preset": "give solver=pi.Solver(pi.Settings.preset('qm9'))",
    **dict.fromkeys(("gradient", "grad", "gradients"), _FORCES),
    **dict.fromkeys(("hessian", "frequencies"), _SECOND),
    **dict.fromkeys(("atom", "smiles", "mol", "unit"), _MOLECULE),
    **dict.fromkeys(
        ("ecp", "dm0", "init_guess", "symmetry", "level_shift", "damp"),
        "not offered; see the arguments in the documentation, or use pyscf.dft.RKS",
    ),
}
"""Keywords that the functions of `pyscf_ipu` do not have, and what to give."""

READERS: Mapping[str, str] = {
    "ase": "pi.Molecule.from_ase(atoms)",
    "rdkit": "pi.Molecule.from_rdkit(graph)",
    "pyscf": "pi.Molecule.from_pyscf(mole)",
    "pathlib": "pi.Molecule.from_xyz(path)",
}
"""The package of an object that is not a Molecule, and what makes one of it."""


def explains_keywords(function: Explained) -> Explained:
    """A function, or a class, whose TypeError for a wrong argument says what to give.

    In its signature, as `help` shows it, the keys of a TypedDict stand for a `**` of that type.
    """
    if isinstance(function, type):
        function.__init__ = explains_keywords(function.__init__)
        return cast(Explained, function)
    signature = _spelt_out(inspect.signature(function))
    name = function.__qualname__.removesuffix(".__init__")
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    by_name = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    n_positional = len(signature.parameters) - len(by_name)

    @wraps(function)
    def checked(*args: object, **kwargs: object) -> object:
        if len(args) > n_positional:
            extra = zip(by_name, args[n_positional:], strict=False)
            raise TypeError(
                f"{name}() takes the level and other options by name: give "
                f"{', '.join(_by_name(extra))}"
            )
        for given in kwargs:
            if given not in known:
                raise TypeError(
                    f"{name}() got an unexpected keyword argument {given!r}: "
                    f"{nearest_keyword(given, known)}"
                )
        return function(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Explained, checked)


def as_molecule(value: object) -> str:
    """How to make a Molecule of something else, as the end of a sentence."""
    if isinstance(value, str):
        if value.lower().endswith((".xyz", ".extxyz")):
            return f"pi.Molecule.from_xyz({value!r}) reads the file"
        if value.lower().endswith((".sdf", ".mol")):
            return f"pi.Molecule.from_sdf({value!r}) reads the file"
        return f"pi.Molecule.from_smiles({value!r}) makes one of a SMILES"
    package = type(value).__module__.split(".")[0]
    return f"{READERS.get(package, 'pi.Molecule(numbers, positions_bohr)')} makes one"


def nearest_keyword(name: str, known: Iterable[str]) -> str:
    """What to give in place of a keyword that there is not, as the end of a sentence."""
    if name in KEYWORDS:
        return KEYWORDS[name]
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'mixed'?)" for the nearest of some names; "" if none is near."""
    near = get_close_matches(name.lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _spelt_out(signature: inspect.Signature) -> inspect.Signature:
    """A signature with keyword-only parameters for the keys of `**level: Unpack[Keywords]`."""
    *others, last = signature.parameters.values()
    if last.kind is not last.VAR_KEYWORD:
        return signature
    (keywords,) = get_args(last.annotation)
    spelt_out = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for key, hint in get_type_hints(keywords).items()
    ]
    at = sum(p.kind is not p.KEYWORD_ONLY for p in others)
    return signature.replace(parameters=[*others[:at], *spelt_out, *others[at:]])


def _by_name(given: Iterable[tuple[str, object]]) -> Iterable[str]:
    """Arguments as they have to be written: `basis="6-31g*"`."""
    for name, value in given:
        kind = type(value).__name__
        if kind == "Settings":
            yield "solver=pyscf_ipu.Solver(settings)"
        elif kind == "Solver":
            yield "solver=..."
        else:
            yield f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"
