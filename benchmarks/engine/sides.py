"""What the workers of `throughput` do: our side, and PySCF's in several ways."""

import resource
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.open_shells import pyscf_uks
from benchmarks.reference import build, frontier
from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.solver import Wanted
from pyscf_ipu.xc.dispersion.correction import correction

WAYS = {"PySCF": {}, "PySCF conv_tol=1e-6": {"tol": 1e-6}, "PySCF density_fit": {"fit": True}}
Found = tuple[bytes, float, float, bool, np.ndarray | None]
"""Positions, energy, gap, whether it converged, and forces if they were asked for."""

_solvers: dict[Settings, Solver] = {}  # of this worker process


def load(
    settings: Settings, shapes: list[Shape], cache: str, forces: bool, open_shell: bool = False
) -> float:
    """Make the programs ready; returns the seconds that it took."""
    enable_disk_cache(cache)
    solver = _solvers.setdefault(settings, Solver(settings))

    def make() -> None:
        for shape in shapes:
            solver.compile(shape, open_shell=open_shell)
            if forces:
                solver.compile_gradient(shape, open_shell=open_shell)

    return harness.timed(make)[0]


def rehearse(settings: Settings, forces: bool) -> None:
    """One small PySCF calculation of each way, which loads libraries and basis sets."""
    mol = Molecule.from_symbols([*"OHH"], [[0, 0, 0], [0, 0, 1.8], [0, 1.75, -0.45]], unit="bohr")
    for options in WAYS.values():
        run_pyscf(settings, mol, options, forces)


def run_ours(settings: Settings, shape: Shape, mols: list[Molecule], forces: bool) -> list[Found]:
    """Molecules of a shape; if one is an open shell, all by the program of two spins."""
    is_open = any(mol.multiplicity > 1 for mol in mols)
    guesses = ("atoms",) * len(mols) if is_open else None
    wanted = Wanted(forces=forces, guesses=guesses)
    found = _solvers[settings].compute(shape, mols, wanted)
    return [
        (
            mol.positions.tobytes(),
            float(one.energy),
            float(one.gap),
            bool(one.converged),
            np.asarray(one.forces) if forces else None,
        )
        for mol, one in zip(mols, found, strict=True)
    ]


def run_pyscf(
    settings: Settings, mol: Molecule, options: dict[str, Any], forces: bool
) -> list[Found]:
    """The same from PySCF, with our dispersion where the functional itself has some.

    Its gradient is without the response of the grid, as by default.
    """
    field = pyscf_uks.build(mol, settings) if mol.multiplicity > 1 else build(mol, settings)
    if options.get("fit") and settings.jk == "exact":  # else it is fitted already
        field = field.density_fit()
    field.conv_tol = options.get("tol", field.conv_tol)
    energy, homo, lumo = frontier(field, mol.n_occupied(settings.basis))
    added = correction(settings.dispersion, mol.numbers, mol.positions, charge=mol.charge)
    gradient = None
    if forces:
        method = field.nuc_grad_method()
        method.verbose = 0
        gradient = added.forces - np.asarray(method.kernel())
    return [
        (
            mol.positions.tobytes(),
            energy + added.energy,
            lumo - homo,
            bool(field.converged),
            gradient,
        )
    ]


def peak_memory() -> float:
    """Largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def error_of(ours: dict[bytes, list], theirs: dict[bytes, list]) -> dict[str, float]:
    """Differences from PySCF in meV, and of forces in Hartree/Bohr."""
    pairs = np.array([[ours[k][:2], theirs[k][:2]] for k in ours])
    energy, gap = 1e3 * HARTREE_TO_EV * np.abs(pairs[:, 0] - pairs[:, 1]).T
    found = {
        "energy_mae": float(energy.mean()),
        "energy_max": float(energy.max()),
        "gap_mae": float(gap.mean()),
        "converged": sum(bool(row[2]) for row in ours.values()),
    }
    if all(row[3] is not None for row in ours.values()):
        forces = [np.abs(ours[k][3] - theirs[k][3]).max() for k in ours]
        found["forces_max"] = float(max(forces))
    return found
