"""PySCF in float64 as the reference: the numbers that the row of a conformer should have.

The level of theory is the manifest's: basis, functional (checked by its libxc ids), grid, spherical
or cartesian functions.  Precision is not part of it.  Dispersion is added to PySCF's numbers as it
was to the row's.
"""

import multiprocessing as mp
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyscf_ipu.base.host.cores import n_cores
from pyscf_ipu.settings import Settings
from pyscf_ipu.xc.dispersion.correction import correction
from qm1b.errors import UserError
from qm1b.process.worker import environment, environment_of
from qm1b.rows.schema import Conformer

CONV_TOL_HARTREE = 1e-11
CONV_TOL_GRADIENT = 1e-6
MAX_CYCLES = 100
STABILITY_ROUNDS = 3

MeanField = Any
"""PySCF's mean-field objects: they get most of their attributes at run time."""


@dataclass(frozen=True)
class Reference:
    """PySCF's numbers for a conformer, in Hartree, e*Bohr and e; all NaN if it raised an error."""

    mulliken_charges: tuple[float, ...]
    """[A] in e."""
    seconds: float
    energy: float = float("nan")
    homo: float = float("nan")
    lumo: float = float("nan")
    """Also NaN if all orbitals are occupied."""
    dipole: tuple[float, float, float] = (float("nan"), float("nan"), float("nan"))
    """About the origin of the positions."""
    converged: bool = False
    problem: str = ""
    """PySCF's error, if it raised one."""
    forces: tuple[tuple[float, float, float], ...] | None = None
    """[A, 3] in Hartree/Bohr, with the response of the grid; None if it raised an error,
    or if they were not asked for."""


def recompute(
    conformer: Conformer, level: Settings, thorough: bool = False, forces: bool = False
) -> Reference:
    """Recompute one conformer, in this process.

    Args:
        conformer: positions in Bohr.
        level: basis, functional, grid level, cartesian functions or not.
        thorough: follow internal instabilities of the solution to a lower one. This shows which of
            two different energies is the better one.
        forces: also compute the forces.
    """
    from pyscf_ipu.results.result import frontier  # imports JAX

    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySCF's remarks about its own interfaces
        field = converged(mean_field(conformer, level))
        # Without empty orbitals there is one determinant, and PySCF's analysis divides by zero.
        # From equal spins PySCF does not leave the closed shell by itself.
        thorough |= conformer.open_shell and conformer.multiplicity == 1
        for _ in range(STABILITY_ROUNDS if thorough and (field.mo_occ == 0).any() else 0):
            orbitals, _, stable, _ = field.stability(return_status=True)
            if stable:
                break
            field = _newton(field, orbitals)
        dipole = field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3))
        _, charges = field.mulliken_pop(verbose=0)
        added = correction(
            level.dispersion, conformer.numbers, conformer.positions, charge=conformer.charge
        )
        on_atoms = _forces(field, added.forces) if forces else None
    homo, lumo = frontier(np.sort(field.mo_energy), field.mol.nelec)
    x, y, z = map(float, dipole)
    return Reference(
        energy=float(field.e_tot) + added.energy,
        homo=float(homo),
        lumo=float(lumo),
        dipole=(x, y, z),
        mulliken_charges=tuple(charges.tolist()),
        converged=bool(field.converged),
        forces=on_atoms,
        seconds=time.perf_counter() - start,
    )


def attempt(
    conformer: Conformer, level: Settings, thorough: bool = False, forces: bool = False
) -> Reference:
    """`recompute`, or PySCF's error: one molecule that it cannot compute must not end an audit."""
    start = time.perf_counter()
    try:
        return recompute(conformer, level, thorough, forces=forces)
    except Exception as error:
        unknown = (float("nan"),) * len(conformer.numbers)
        seconds = time.perf_counter() - start
        return Reference(unknown, seconds, problem=f"{type(error).__name__}: {error}")


def recompute_many(
    conformers: Sequence[Conformer],
    level: Settings | Sequence[Settings],
    workers: int = 0,
    thorough: bool = False,
    forces: bool = False,
) -> Iterator[tuple[int, Reference]]:
    """Recompute conformers in single-threaded processes.

    Args:
        conformers: in the order in which they are started.
        level: as for `recompute`; or one for each conformer.
        workers: processes; 0 for one per core.
        thorough: as for `recompute`.
        forces: as for `recompute`.

    Yields:
        The number of a conformer and its reference, as they are finished.

    Raises:
        UserError: a process died.
    """
    count = min(workers or n_cores(), len(conformers))
    if not count:
        return
    levels = [level] * len(conformers) if isinstance(level, Settings) else level
    with environment_of(environment()):
        spawn = mp.get_context("spawn")
        pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_without_checkpoints)
        try:
            futures = {
                pool.submit(attempt, conformer, levels[i], thorough, forces): i
                for i, conformer in enumerate(conformers)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise UserError(
                "a process of PySCF died, perhaps for lack of memory; use fewer --workers"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _without_checkpoints() -> None:
    """Let PySCF write no checkpoints in this process: nobody reads them, and they may fail."""
    from pyscf.scf import hf

    hf.MUTE_CHKFILE = True


def mean_field(conformer: Conformer, level: Settings) -> MeanField:
    """PySCF's Kohn-Sham or Hartree-Fock object, with default thresholds."""
    mole = level.pyscf_mole(
        conformer.numbers,
        conformer.positions,
        conformer.charge,
        unpaired=conformer.multiplicity - 1,
    )
    return level.pyscf_method(mole, unrestricted=conformer.open_shell)


def _forces(field: MeanField, added: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    """[A, 3] -dE/dR in Hartree/Bohr, dispersion `added`; grid points move with the nuclei."""
    method = field.nuc_grad_method()
    method.verbose, method.grid_response = 0, True
    return tuple((float(x), float(y), float(z)) for x, y, z in added - method.kernel())


def converged(field: MeanField) -> MeanField:
    """The self-consistent field by DIIS, else by second-order steps."""
    field.conv_tol, field.conv_tol_grad = CONV_TOL_HARTREE, CONV_TOL_GRADIENT
    field.max_cycle = MAX_CYCLES
    field.kernel()
    return field if field.converged else _newton(field, field.mo_coeff)


def _newton(field: MeanField, orbitals: np.ndarray) -> MeanField:
    second_order = field.newton()
    second_order.kernel(orbitals, field.mo_occ)
    return second_order
