"""PySCF in float64 as the reference: conformers in, the numbers that a row should have had out.

The level of theory is the manifest's: basis, functional (checked by its libxc ids), grid level with
PySCF's own pruning, spherical or cartesian functions. Precision is not part of it.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .compute import environment
from .errors import UserError
from .presets import Level
from .schema import Conformer
from .workers import n_cores

CONV_TOL_HARTREE = 1e-11
CONV_TOL_GRADIENT = 1e-6
MAX_CYCLES = 100
STABILITY_ROUNDS = 3


@dataclass(frozen=True)
class Reference:
    """What PySCF finds for a conformer, in Hartree and e*Bohr; lumo is NaN if there is none."""

    energy: float
    homo: float
    lumo: float
    dipole: tuple[float, float, float]
    """About the origin of the positions."""
    converged: bool
    seconds: float


def reference(conformer: Conformer, level: Level, thorough: bool = False) -> Reference:
    """Recompute one conformer, in this process.

    Args:
        conformer: positions in Bohr.
        level: basis, functional, grid level, cartesian functions or not.
        thorough: follow internal instabilities of the solution to a lower one, so that an energy
            that differs can be told to be the better or the worse one.
    """
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySCF's remarks about its own interfaces
        field = _converged(_mean_field(conformer, level))
        for _ in range(STABILITY_ROUNDS if thorough else 0):
            orbitals, _, stable, _ = field.stability(return_status=True)
            if stable:
                break
            field = _newton(field, orbitals)
        dipole = field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3))
    occupied = field.mol.nelectron // 2
    orbital_energies = np.sort(field.mo_energy)
    lumo = orbital_energies[occupied] if occupied < len(orbital_energies) else np.nan
    x, y, z = map(float, dipole)
    return Reference(
        energy=float(field.e_tot),
        homo=float(orbital_energies[occupied - 1]),
        lumo=float(lumo),
        dipole=(x, y, z),
        converged=bool(field.converged),
        seconds=time.perf_counter() - start,
    )


def references(
    conformers: Sequence[Conformer], level: Level, workers: int = 0, thorough: bool = False
) -> Iterator[tuple[int, Reference]]:
    """Recompute conformers in single-threaded processes.

    Args:
        conformers: in the order in which they are begun.
        level: as for `reference`.
        workers: processes; 0 for one a core.
        thorough: as for `reference`.

    Yields:
        The number of a conformer and its reference, as they are done.
    """
    count = min(workers or n_cores(), len(conformers))
    if not count:
        return
    with _variables(environment()):
        pool = ProcessPoolExecutor(count, mp_context=mp.get_context("spawn"))
        try:
            futures = {
                pool.submit(reference, conformer, level, thorough): i
                for i, conformer in enumerate(conformers)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def level_of(settings: Mapping[str, Any]) -> Level:
    """The level of theory among a manifest's settings."""
    return Level(**{f.name: settings[f.name] for f in fields(Level) if f.name in settings})


def check_functional(xc: str, definition: str) -> None:
    """Make sure that PySCF's functional consists of the libxc ids that a manifest states.

    Raises:
        UserError: the name is unknown, or means something else here than in the dataset.
    """
    from pyscf.dft import libxc

    from pyscf_ipu.xc import functional

    if xc == "hf":
        return
    try:
        name = functional(xc).pyscf_name
    except ValueError as error:
        raise UserError(f"the dataset's functional is not known here: {error}.") from None
    ours = {int(number) for number, _ in libxc.parse_xc(name)[1]}
    stated = {int(number) for number in re.findall(r"\((\d+)\)|libxc (\d+)", definition) for
              number in number if number}  # fmt: skip
    if not ours <= stated:
        raise UserError(
            f"functional {xc} of this PySCF has the libxc ids {sorted(ours)}, the dataset's is "
            f'"{definition}"; verify it with a release that has the same one.'
        )


def _mean_field(conformer: Conformer, level: Level) -> Any:
    from pyscf import dft, gto, scf

    from pyscf_ipu.xc import functional

    atoms = zip(conformer.numbers.tolist(), conformer.positions.tolist(), strict=True)
    mole = gto.M(
        atom=list(atoms),
        unit="Bohr",
        basis=level.basis,
        charge=conformer.charge,
        cart=level.cart,
        verbose=0,
    )
    if level.xc == "hf":
        return scf.RHF(mole)
    field = dft.RKS(mole, xc=functional(level.xc).pyscf_name)
    field.grids.level = level.grid_level
    return field


def _converged(field: Any) -> Any:
    """The self-consistent field by DIIS, else by second-order steps."""
    field.conv_tol, field.conv_tol_grad = CONV_TOL_HARTREE, CONV_TOL_GRADIENT
    field.max_cycle = MAX_CYCLES
    field.kernel()
    return field if field.converged else _newton(field, field.mo_coeff)


def _newton(field: Any, orbitals: Any) -> Any:
    found = field.newton()
    found.kernel(orbitals, field.mo_occ)
    return found


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for processes begun inside: threads are counted at the imports."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
