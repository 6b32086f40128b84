"""Which molecules a calculation can be started on, and how to make one."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import MAX_ATOMIC_NUMBER, SYMBOLS, symbol_of

MIN_DISTANCE_BOHR = {"float32": 0.7, "mixed": 0.2, "float64": 0.2}
"""Closer atoms are taken for a mistake: the shortest bond, H2, is 1.4 Bohr long.  float32 energies
of closer pairs are off by more than 5 meV: from 0.6 Bohr down for Cl2, 0.3 Bohr for O2."""

READERS: Mapping[str, str] = {
    "ase": "pi.Molecule.from_ase(atoms)",
    "rdkit": "pi.Molecule.from_rdkit(graph)",
    "pyscf": "pi.Molecule.from_pyscf(mole)",
    "pathlib": "pi.Molecule.from_xyz(path)",
}
"""The package of an object that is not a Molecule, and what makes one of it."""


def check_elements(numbers: Int[np.ndarray, " A"], label: str) -> None:
    """Raise InvalidMolecule, which begins with `label`, unless all are elements H to Rn."""
    bad = [i for i, number in enumerate(numbers) if not 1 <= number <= MAX_ATOMIC_NUMBER]
    if bad:
        number = int(numbers[bad[0]])
        known = 1 <= number < len(SYMBOLS)
        what = f"{symbol_of(number)} ({number})" if known else f"number {number}"
        raise InvalidMolecule(
            f"{label} has element {what} at atom {bad[0]}: only elements H to Rn (atomic numbers 1 "
            f"to {MAX_ATOMIC_NUMBER}) are computed; leave this molecule out."
        )


def check_positions(
    numbers: Int[np.ndarray, " A"],
    positions: Float[np.ndarray, "A 3"],
    label: str,
    precision: str = "float64",
) -> None:
    """Raise InvalidMolecule if a position (Bohr) is not finite or two atoms are too close."""
    bad = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    if bad.size:
        i = int(bad[0])
        raise InvalidMolecule(
            f"{label} has position {positions[i].tolist()} Bohr at atom {i} "
            f"({symbol_of(int(numbers[i]))}): every coordinate must be a finite number; repair or "
            "leave out this molecule."
        )
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    distance[np.diag_indices(len(numbers))] = np.inf
    i, j = sorted(int(k) for k in np.unravel_index(int(np.argmin(distance)), distance.shape))
    least = MIN_DISTANCE_BOHR[precision]
    if distance[i, j] < least:
        raise InvalidMolecule(
            f"{label} has atoms {i} ({symbol_of(int(numbers[i]))}) and {j} "
            f"({symbol_of(int(numbers[j]))}) only {distance[i, j]:.3g} Bohr apart "
            f"({distance[i, j] * BOHR_TO_ANGSTROM:.3g} Angstrom): at least {least} "
            f"Bohr ({least * BOHR_TO_ANGSTROM:.3g} Angstrom) is allowed in {precision}; check the "
            "geometry and its unit: Molecule(numbers, positions) takes Bohr; text, XYZ files and "
            "ASE have Angstrom."
        )


def check_electrons(n_electrons: int, charge: int, label: str, multiplicity: int = 1) -> None:
    """Raise InvalidMolecule unless there are electrons, as many as go with the multiplicity."""
    if n_electrons > 0 and (n_electrons - multiplicity) % 2 and multiplicity <= n_electrons + 1:
        return
    if n_electrons <= 0:
        what = "no electrons: give the charge="
    elif multiplicity == 1:
        what = (
            f"an odd number of electrons ({n_electrons}), and multiplicity 1 (closed shell) needs "
            "an even one: give charge= for an ion, or multiplicity=2 and pi.uks for a radical"
        )
    else:
        parity = "even" if n_electrons % 2 else "odd"
        what = (
            f"{n_electrons} electrons, which do not go with multiplicity {multiplicity}: give an "
            f"{parity} one up to {n_electrons + 1}, 2S + 1, or another charge="
        )
    raise InvalidMolecule(f"{label} with charge {charge:+d} has {what}")


def check_closed(multiplicity: int, label: str) -> None:
    """Raise InvalidMolecule for an open shell where closed ones are computed."""
    if multiplicity != 1:
        raise InvalidMolecule(
            f"{label} is an open shell, of multiplicity {multiplicity}, and this calculation is "
            "restricted (closed shell): compute it with pi.uks, or pyscf-ipu uks"
        )


def whole_multiplicity(multiplicity: object) -> int:
    """A multiplicity as an int; raises ValueError unless it is a whole number from 1 on."""
    if isinstance(multiplicity, int | np.integer) and not isinstance(multiplicity, bool):  # noqa: SIM102
        if multiplicity >= 1:
            return int(multiplicity)
    raise UsageError(
        f"multiplicity is {multiplicity!r}: it must be a whole number from 1 on, 2S + 1"
    )


def whole_charge(charge: object) -> int:
    """A charge in units of e as an int; raises ValueError unless it is a whole number."""
    number = (int, float, np.integer, np.floating)
    if isinstance(charge, number) and not isinstance(charge, bool):  # noqa: SIM102
        if np.isfinite(charge) and int(charge) == charge:
            return int(charge)
    raise UsageError(f"charge is {charge!r}: it must be a whole number, in units of e")


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
