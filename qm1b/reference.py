"""PySCF in float64 as the reference: conformers in, the numbers that a row should have had out.

The level of theory is the manifest's: basis, functional (checked by its libxc ids), grid level with
PySCF's own pruning, spherical or cartesian functions. Precision is not part of it.
"""

from __future__ import annotations

import math
import multiprocessing as mp
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .compute import environment
from .errors import UserError
from .presets import Level
from .schema import Conformer
from .workers import environment_of, n_cores

CONV_TOL_HARTREE = 1e-11
CONV_TOL_GRADIENT = 1e-6
MAX_CYCLES = 100
STABILITY_ROUNDS = 3


@dataclass(frozen=True)
class Reference:
    """What PySCF finds for a conformer, in Hartree, e*Bohr and e; lumo is NaN if there is none."""

    energy: float
    homo: float
    lumo: float
    dipole: tuple[float, float, float]
    """About the origin of the positions."""
    mulliken_charges: tuple[float, ...]
    """[A] in e."""
    converged: bool
    seconds: float
    problem: str = ""
    """Why there is none, if PySCF raised an error; all numbers are NaN then."""


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
        field = _converged(mean_field(conformer, level))
        # Without empty orbitals there is one determinant, and PySCF's analysis divides by zero.
        for _ in range(STABILITY_ROUNDS if thorough and (field.mo_occ == 0).any() else 0):
            orbitals, _, stable, _ = field.stability(return_status=True)
            if stable:
                break
            field = _newton(field, orbitals)
        dipole = field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3))
        _, charges = field.mulliken_pop(verbose=0)
    occupied = field.mol.nelectron // 2
    orbital_energies = np.sort(field.mo_energy)
    lumo = orbital_energies[occupied] if occupied < len(orbital_energies) else np.nan
    x, y, z = map(float, dipole)
    return Reference(
        energy=float(field.e_tot),
        homo=float(orbital_energies[occupied - 1]),
        lumo=float(lumo),
        dipole=(x, y, z),
        mulliken_charges=tuple(charges.tolist()),
        converged=bool(field.converged),
        seconds=time.perf_counter() - start,
    )


def attempt(conformer: Conformer, level: Level, thorough: bool = False) -> Reference:
    """`reference`, or what went wrong: one molecule that PySCF cannot do must not end an audit."""
    start = time.perf_counter()
    nan = float("nan")
    try:
        return reference(conformer, level, thorough)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        return Reference(
            nan, nan, nan, (nan, nan, nan), (nan,) * len(conformer.numbers), False, seconds, problem
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

    Raises:
        UserError: a process died.
    """
    count = min(workers or n_cores(), len(conformers))
    if not count:
        return
    with environment_of(environment()):
        pool = ProcessPoolExecutor(count, mp_context=mp.get_context("spawn"))
        try:
            futures = {
                pool.submit(attempt, conformer, level, thorough): i
                for i, conformer in enumerate(conformers)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise UserError(
                "a process of PySCF died, for lack of memory perhaps; use fewer --workers."
            ) from None
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

    stated = _Definition.parse(definition)
    try:
        known = functional(xc)
    except ValueError as error:
        raise UserError(f"the dataset's functional is not known here: {error}.") from None
    (hybrid, _, _), terms = libxc.parse_xc(known.pyscf_name)
    ours = {int(number): float(weight) for number, weight in terms}
    means = {stated.whole: 1.0} if stated.whole in ours else stated.terms
    here = xc == "hf" or stated == _Definition.parse(known.definition)
    if stated.whole not in ours and xc != "hf":
        here = here and math.isclose(float(hybrid), stated.exchange)
    if not here or ours != means:
        raise UserError(
            f"functional {xc} of this PySCF has the libxc ids {sorted(ours)}, the dataset's is "
            f'"{definition}"; verify it with a release that has the same one.'
        )


@dataclass(frozen=True)
class _Definition:
    """What the text of `pyscf_ipu.xc.Functional.definition` states, in libxc ids."""

    whole: int | None
    """Id of the whole functional, if libxc has it as one."""
    terms: dict[int, float]
    """Its parts and their weights."""
    exchange: float
    """Weight of exact exchange."""

    @classmethod
    def parse(cls, text: str) -> _Definition:
        whole = re.search(r"libxc (\d+)", text)
        exchange = re.search(r"([\d.]+) HF\b", text)
        terms = re.findall(r"(?:([\d.]+) )?\w+\((\d+)\)", text)
        return cls(
            int(whole.group(1)) if whole else None,
            {int(number): float(weight or 1.0) for weight, number in terms},
            float(exchange.group(1)) if exchange else 0.0,
        )


def mean_field(conformer: Conformer, level: Level) -> Any:
    """PySCF's restricted Kohn-Sham or Hartree-Fock object, with default thresholds."""
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
