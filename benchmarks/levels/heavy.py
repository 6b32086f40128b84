"""Molecules of elements beyond krypton against PySCF in float64: energies and forces.

Every molecule is computed in float64 and in float32.  The reference of a force is the slope of
PySCF's energy along one direction, because PySCF's own gradient differs from it by up to 3e-5
Hartree/Bohr where the sizes of two atoms differ much (RbF).  With --shares the script says instead
which share of a conformer of iodobenzene PySCF's core potentials take, on one core.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.shapes.core import core_forces, core_matrix

TETRAHEDRON = np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) / 3**0.5
PYRAMID = np.array([[0, 0.819, -0.574], [0.709, -0.409, -0.574], [-0.709, -0.409, -0.574]])
HEXAGON = [[np.sin(a), np.cos(a)] for a in np.arange(6) * np.pi / 3]
RING = np.array([[0, x, y] for x, y in HEXAGON])


def along(symbols: str, *lengths: float) -> tuple[list[str], np.ndarray]:
    """Atoms on the z axis, by the distances from each to the next in Angstrom."""
    return symbols.split(), np.array([[0, 0, z] for z in np.cumsum([0, *lengths])])


ATOMS: dict[str, tuple[list[str], np.ndarray]] = {
    "I2": along("I I", 2.666),
    "HI": along("H I", 1.609),
    "ICl": along("I Cl", 2.321),
    "RbF": along("Rb F", 2.270),
    "AgH": along("Ag H", 1.618),
    "AuCl": along("Au Cl", 2.199),
    "HgCl2": along("Cl Hg Cl", 2.252, 2.252),
    "XeF2": along("F Xe F", 1.977, 1.977),
    "CH3I": (["I", "C", *"HHH"], np.array([[0, 0, 2.139], [0, 0, 0], *(1.084 * PYRAMID)])),
    "SbH3": (["Sb", *"HHH"], np.array([[0, 0, 0], *(1.704 * PYRAMID)])),
    "TeH2": (["Te", "H", "H"], np.array([[0, 0, 0], [0, 1.173, 1.173], [0, -1.173, 1.173]])),
    "SnH4": (["Sn", *"HHHH"], np.array([[0, 0, 0], *(1.711 * TETRAHEDRON)])),
    "PbH4": (["Pb", *"HHHH"], np.array([[0, 0, 0], *(1.754 * TETRAHEDRON)])),
    "C6H5I": (
        [*"CCCCCC", "I", *"HHHHH"],
        np.array([*(1.394 * RING), [0, 0, 1.394 + 2.095], *(2.478 * RING[1:])]),
    ),
}
"""Symbols and positions in Angstrom: experimental bond lengths, rounded angles."""
LEVELS = [f"{xc}/{basis}" for xc in ("pbe0", "wb97x") for basis in ("def2-svp", "def2-tzvp")]
ENERGY_BOUND, FORCE_BOUND = 1e-7, 1e-6
"""Of float64, Hartree and Hartree/Bohr."""
FLOAT32_ENERGY_BOUND, FLOAT32_FORCE_BOUND = 1e-3 / HARTREE_TO_EV, 1e-4
STEP = 2e-3
"""Bohr, of the differences."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "molecules", ATOMS)
    parser.add_argument("--levels", nargs="*", choices=LEVELS, default=LEVELS)
    parser.add_argument("--shares", action="store_true", help="time core potentials instead")
    args = parser.parse_args()
    made = shares if args.shares else compared
    rows, missed = [], []
    for level in args.levels:
        for name in ["C6H5I"] if args.shares else args.molecules or ATOMS:
            rows.append(made(name, level))
            print("  ".join(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
            missed += [] if rows[-1].get("reached", True) else [f"{name}, {level}"]
    return harness.finish(args.out, {"rows": rows}, missed)


def molecule(name: str) -> Molecule:
    """One of ATOMS."""
    return Molecule.from_symbols(*ATOMS[name], unit="angstrom")


def settings_of(level: str, **more: Any) -> Settings:
    """A level by functional and basis."""
    xc, basis = level.split("/")
    return Settings(xc=xc, basis=basis, **more)


def compared(name: str, level: str) -> dict[str, Any]:
    """Ours minus PySCF's, without dispersion, which both take from one package."""
    mol, row = molecule(name), {"molecule": name, "level": level}
    exact = settings_of(level, precision="float64").without_dispersion()
    rng = np.random.default_rng(7)
    direction = rng.normal(size=mol.positions.shape)
    direction /= np.linalg.norm(direction)
    energies = [pyscf_energy(mol, exact, STEP * n * direction) for n in (0, 1, -1, 2, -2)]
    slope = (8 * (energies[1] - energies[2]) - (energies[3] - energies[4])) / (12 * STEP)
    reached = True
    for precision, bounds in (
        ("float64", (ENERGY_BOUND, FORCE_BOUND)),
        ("float32", (FLOAT32_ENERGY_BOUND, FLOAT32_FORCE_BOUND)),
    ):
        ours = rks(mol, solver=Solver(replace(exact, precision=precision)), forces=True)
        assert ours.forces is not None
        error = np.sum(np.asarray(ours.forces) * direction) + slope
        errors = float(ours.energy) - energies[0], float(error)
        row |= {f"{precision} Ha": f"{errors[0]:.1e}", f"{precision} Ha/bohr": f"{errors[1]:.1e}"}
        reached &= all(abs(x) <= bound for x, bound in zip(errors, bounds, strict=True))
    return row | {"reached": reached}


def pyscf_energy(mol: Molecule, level: Settings, moved: np.ndarray) -> float:
    """PySCF's energy with atoms moved (Bohr), in Hartree."""
    field = level.pyscf_method(level.pyscf_mole(mol.numbers, mol.positions + moved, mol.charge))
    field.conv_tol, field.conv_tol_grad = 1e-12, 1e-7
    field.kernel()
    return float(field.e_tot)


def shares(name: str, level: str) -> dict[str, Any]:
    """Seconds of a conformer, without and with forces, and of PySCF's core potentials in it."""
    mol, settings = molecule(name), settings_of(level, jk="ri")
    solver = Solver(settings)
    first = rks(mol, solver=solver, forces=True, orbitals=True)
    density = np.asarray(first.density_matrix)
    plain, both = (timed(lambda f=f: rks(mol, solver=solver, forces=f)) for f in (False, True))
    matrix = timed(lambda: core_matrix(mol, settings))
    slope = timed(lambda: core_forces(mol, settings, density))
    return {
        "level": level,
        "energy s": round(plain, 2),
        "of it core potentials": f"{matrix / plain:.0%}",
        "with forces s": round(both, 2),
        "of both core potentials": f"{(matrix + slope) / both:.0%}",
    }


def timed(run: Callable[[], object]) -> float:
    """The least of three runs, in seconds."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
