"""Molden and cube files, by PySCF's writers, which know the order of AOs in each format."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.temporaries import replacing
from pyscf_ipu.elements.mixed import functions_of
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.entries import Values
from pyscf_ipu.settings import Settings

if TYPE_CHECKING:
    from pyscf.gto import Mole

DENSITIES = ("density", "spin")
"""Of all electrons, and of alpha less beta electrons."""
ORBITALS = (*DENSITIES, "homo", "lumo")
"""What a cube file can hold by name."""
SPINS = ("alpha", "beta")


def mole_of(molecule: Molecule, settings: Settings) -> Mole:
    """The molecule for PySCF, with the basis set of the settings."""
    return settings.pyscf_mole(
        molecule.numbers, molecule.positions, molecule.charge, unpaired=molecule.unpaired
    )


def write_molden(values: Values, path: Path) -> None:
    """Write all orbitals of one molecule; see `Keepable.to_molden`."""
    from pyscf.tools import molden

    _check(values, path)
    mole = mole_of(values["molecule"], values["settings"])
    functions = functions_of(mole, values["settings"].cart)
    text = StringIO()
    molden.header(mole, text)
    for spin, (energies, orbitals, n_occupied) in zip(SPINS, _spins(values), strict=False):
        occupied = np.arange(len(energies)) < n_occupied
        electrons = 2.0 if values["mo_energy"].ndim == 1 else 1.0
        molden.orbital_coeff(
            mole,
            text,
            functions @ orbitals,
            spin=spin.capitalize(),
            ene=energies,
            occ=np.where(occupied, electrons, 0.0),
        )
    with replacing(path) as file:
        file.write(_with_cores(text.getvalue(), mole).encode())


def _with_cores(text: str, mole: Mole) -> str:
    """A Molden file with atomic numbers, and the electrons that potentials replace.

    PySCF writes the charges of the nuclei without these in place of the numbers.
    """
    cores = {i: n for i in range(mole.natm) if (n := mole.atom_nelec_core(i))}
    lines = text.split("\n")
    first = lines.index("[Atoms] (AU)") + 1
    for atom, n in cores.items():
        charge = mole.atom_charge(atom)
        lines[first + atom] = lines[first + atom].replace(f" {charge} ", f" {charge + n} ", 1)
    if cores:
        section = ["[Core]", *(f"{atom + 1} : {n}" for atom, n in cores.items())]
        lines[first + mole.natm : first + mole.natm] = section
    return "\n".join(lines)


def write_cube(
    values: Values, path: Path, what: str | int, points: int, spin: str = "alpha"
) -> None:
    """Write a density or an orbital of one molecule; see `Keepable.to_cube`."""
    from pyscf.tools import cubegen

    _check(values, path)
    if points < 2:
        raise UsageError(f"points={points}: give at least 2 points per direction")
    mole = mole_of(values["molecule"], values["settings"])
    functions = functions_of(mole, values["settings"].cart)
    grid = {"nx": points, "ny": points, "nz": points}
    if what in DENSITIES:
        density = functions @ _density(values, what) @ functions.T
        with replacing(path) as file:
            cubegen.density(mole, file.name, density, **grid)
        return
    if spin not in SPINS:
        raise UsageError(f"spin={spin!r}: give one of {', '.join(map(repr, SPINS))}")
    orbitals, index = _orbital(values, what, spin=SPINS.index(spin))
    orbital = functions @ orbitals[:, index]
    with replacing(path) as file:
        cubegen.orbital(mole, file.name, orbital, **grid)


def _density(values: Values, what: str | int) -> np.ndarray:
    """The density of all electrons, or of alpha less beta electrons, in the level's AOs."""
    density = values["density_matrix"]
    if what == "density":
        return density if density.ndim == 2 else density.sum(axis=0)
    return 0.0 * density if density.ndim == 2 else density[0] - density[1]


def _orbital(values: Values, what: str | int, spin: int) -> tuple[np.ndarray, int]:
    """The orbitals of a spin, or of closed shells, and the number of one of them."""
    spins = _spins(values)
    _, orbitals, n_occupied = spins[spin % len(spins)]
    n, homo = orbitals.shape[1], n_occupied - 1
    index = {"homo": homo, "lumo": homo + 1}.get(what, what) if isinstance(what, str) else what
    if not isinstance(index, int) or not 0 <= index < n:
        raise UsageError(
            f"there is no orbital {what!r}: give {', '.join(map(repr, ORBITALS))}, or a number "
            f"from 0 to {n - 1}"
        )
    return orbitals, index


def _spins(values: Values) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Levels, orbitals and number of occupied ones of either spin; of closed shells once."""
    counts = values["molecule"].n_occupied(values["settings"].basis)
    levels = np.atleast_2d(values["mo_energy"])
    orbitals = values["mo_coeff"].reshape(len(levels), *values["mo_coeff"].shape[-2:])
    return list(zip(levels, orbitals, counts, strict=False))


def _check(values: Values, path: Path) -> None:
    """Raise UsageError where there is nothing to write, or no folder to write into."""
    if values["molecule"] is None or values["settings"] is None:
        raise UsageError("this result does not know its molecule: take one that rks has returned")
    if values["status"].startswith("invalid"):
        raise UsageError(
            f"there are no orbitals, the molecule was not computed: {values['status']}"
        )
    if values["mo_coeff"] is None:
        raise UsageError("this result has no orbitals: compute it with rks(..., orbitals=True)")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}; make it first")
