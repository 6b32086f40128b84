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

ORBITALS = ("density", "homo", "lumo")
"""What a cube file can hold by name."""


def mole_of(molecule: Molecule, settings: Settings) -> Mole:
    """The molecule for PySCF, with the basis set of the settings."""
    return settings.pyscf_mole(molecule.numbers, molecule.positions, molecule.charge)


def write_molden(values: Values, path: Path) -> None:
    """Write all orbitals of one molecule; see `Keepable.to_molden`."""
    from pyscf.tools import molden

    _check(values, path)
    energies = values["mo_energy"]
    occupied = np.arange(len(energies)) < _n_occupied(values)
    mole = mole_of(values["molecule"], values["settings"])
    functions = functions_of(mole, values["settings"].cart)
    text = StringIO()
    molden.header(mole, text)
    molden.orbital_coeff(
        mole,
        text,
        functions @ values["mo_coeff"],
        ene=energies,
        occ=np.where(occupied, 2.0, 0.0),
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


def write_cube(values: Values, path: Path, what: str | int, points: int) -> None:
    """Write the density or an orbital of one molecule; see `Keepable.to_cube`."""
    from pyscf.tools import cubegen

    _check(values, path)
    if points < 2:
        raise UsageError(f"points={points}: give at least 2 points per direction")
    mole = mole_of(values["molecule"], values["settings"])
    functions = functions_of(mole, values["settings"].cart)
    grid = {"nx": points, "ny": points, "nz": points}
    if what == "density":
        density = functions @ values["density_matrix"] @ functions.T
        with replacing(path) as file:
            cubegen.density(mole, file.name, density, **grid)
        return
    orbital = functions @ values["mo_coeff"][:, _orbital(values, what)]
    with replacing(path) as file:
        cubegen.orbital(mole, file.name, orbital, **grid)


def _orbital(values: Values, what: str | int) -> int:
    n, homo = values["mo_coeff"].shape[1], _n_occupied(values) - 1
    index = {"homo": homo, "lumo": homo + 1}.get(what, what) if isinstance(what, str) else what
    if not isinstance(index, int) or not 0 <= index < n:
        raise UsageError(
            f"there is no orbital {what!r}: give {', '.join(map(repr, ORBITALS))}, or a number "
            f"from 0 to {n - 1}"
        )
    return index


def _n_occupied(values: Values) -> int:
    return values["molecule"].n_occupied(values["settings"].basis)


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
