"""An engine that computes nothing, for tests of everything around it.

Worker processes import it by name. Some molecules are traps: helium kills the process, neon and
argon raise, chlorine does not converge, sulphur only with damping, silicon only in float64,
phosphorus is too large for the memory, boron has a state without a gap, which is unstable, and
fluorine one with a small gap, which is not. On a simulated chip, a shape of 64 AOs is too large.
"""

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from pyscf_ipu.base.errors import InvalidMolecule, TooLarge, UnknownBasis, UsageError

AOS = {1: 1, 2: 1, **dict.fromkeys(range(3, 11), 5), **dict.fromkeys(range(11, 19), 9)}
AOS |= {19: 13, 20: 13, **dict.fromkeys(range(21, 37), 18), **dict.fromkeys(range(37, 87), 27)}


@dataclass(frozen=True)
class Shape:
    n_ao: int

    @property
    def label(self):
        return f"{self.n_ao} AOs"


class Solver:
    def __init__(self, **level):
        if level["basis"] != "sto-3g":
            raise UnknownBasis(f"unknown basis {level['basis']!r}: use one of sto-3g")
        self.compiled = set()
        self.precision = level.get("precision", "float32")
        self.has_dispersion = "-d" in level.get("xc", "")
        self.fixed_cycles = level.get("fixed_cycles", 0)
        self.keeps_cycles = level.get("history", False)
        self.is_simulated = "machine" in level

    def n_ao(self, numbers):
        return sum(AOS[int(z)] for z in numbers)

    def shape(self, molecule, coarse=False):
        if 15 in molecule.numbers:
            raise TooLarge("too large: phosphorus needs 900 GiB")
        step = (8, 32, 128)[coarse]
        return Shape(-(-self.n_ao(molecule.numbers) // step) * step)

    def stays_out(self, molecule, convergence):
        """Chlorine never converges, sulphur with damping, silicon in float64."""
        damped = convergence is not None and convergence.damping > 0
        return (
            17 in molecule.numbers
            or (16 in molecule.numbers and not damped)
            or (14 in molecule.numbers and self.precision != "float64")
        )

    def batch_size(self, shape):
        return 4

    def memory_bytes(self, shape, forces=False, open_shell=False):
        return 1

    def compile(self, shape, stability=False, open_shell=False):
        if (shape, stability, open_shell) in self.compiled:
            return None
        if self.is_simulated and shape.n_ao == 64:
            raise TooLarge("too large for a simulated chip: 700000 bytes")
        self.compiled.add((shape, stability, open_shell))
        return SimpleNamespace(shape=shape, seconds=0.01, cached=False)

    def compile_gradient(self, shape, open_shell=False):
        return None

    def compute(self, shape, molecules, wanted, convergence=None):
        """Open shells: what is unpaired sits on the first atom."""
        results = self.run(
            shape, molecules, convergence, wanted.forces, wanted.stability, wanted.orbitals
        )
        for molecule, result, guess in zip(molecules, results, wanted.guesses, strict=True):
            assert guess == ("mixed" if molecule.multiplicity == 1 else "atoms")
            spin = molecule.unpaired / 2
            result.s_squared = spin * (spin + 1) + (0.5 if molecule.multiplicity == 1 else 0.0)
            result.spin_populations = molecule.unpaired * np.eye(len(molecule.numbers))[0]
            result.mo_energy = np.stack([result.mo_energy] * 2)
        return results

    def run(
        self, shape, molecules, convergence=None, forces=False, stability=False, orbitals=False
    ):
        assert 1 <= len(molecules) <= self.batch_size(shape)
        assert not (stability and self.fixed_cycles)
        if any(list(m.numbers) == [2] for m in molecules):
            os._exit(3)
        if any(list(m.numbers) in ([10], [18]) for m in molecules):
            raise RuntimeError("neon lights")
        results = [
            self.result(m, self.stays_out(m, convergence), forces, stability) for m in molecules
        ]
        for molecule, result in zip(molecules, results, strict=True):
            if orbitals:
                vars(result).update(self.of_density(molecule))
        return results

    def of_density(self, molecule):
        """Symmetric, and different from row to row."""
        positions, n_atoms = molecule.positions, len(molecule.numbers)
        orders = np.abs(positions @ positions.T) * (1 - np.eye(n_atoms))
        return {
            "charges_lowdin": np.full(n_atoms, molecule.charge / n_atoms),
            "bond_orders": (orders + orders.T) / 2,
            "quadrupole": positions.T @ positions,
        }

    def result(self, molecule, stays_out, forces, stability):
        n_atoms = len(molecule.numbers)
        energy = -float(np.sum(molecule.numbers**2.0)) + 1e-3 * np.sum(molecule.positions**2)
        history = self.history(energy, 50 if stays_out else 9)
        boron = 5 in molecule.numbers
        return SimpleNamespace(
            energy=energy,
            homo=-0.3,
            lumo=-0.3 if boron and not stability else -0.25 if 9 in molecule.numbers else 0.2,
            gap=0.5,
            dipole=molecule.positions.sum(axis=0),
            converged=not stays_out,
            cycles=50 if stays_out else 9,
            commutator_norm=1e-5,
            energy_std=float(np.std(history["energy"][-5:])),
            jk="exact" if self.n_ao(molecule.numbers) < 10 else "ri",
            dispersion=-1e-3 * n_atoms if self.has_dispersion else None,
            status="not_converged" if stays_out else "converged",
            mo_energy=np.linspace(-10, 1, self.n_ao(molecule.numbers)),
            mulliken_charges=np.full(n_atoms, molecule.charge / n_atoms),
            forces=self.forces(molecule, stays_out) if forces else None,
            stable=not stays_out if stability else None,
            followed=int(boron) if stability else None,
            history=history if self.keeps_cycles and not stability else None,
            ipu_cycles_low=1000.5 * (50 if stays_out else 9) if self.is_simulated else None,
            ipu_cycles_high=4000.5 * (50 if stays_out else 9) if self.is_simulated else None,
            ipu_fullest_tile_bytes=2000 if self.is_simulated else None,
        )

    def history(self, energy, cycles):
        """Ten times nearer to the energy in each cycle."""
        error = 10.0 ** -np.arange(cycles)
        return {"energy": energy + error, "commutator_norm": 2 * error, "gap": 0.5 + 3 * error}

    def forces(self, molecule, stays_out):
        """Towards the centre, so that they add up to zero."""
        found = molecule.positions.mean(axis=0) - molecule.positions
        return np.full_like(found, np.nan) if stays_out else 1e-2 * found


class Slow(Solver):
    """Takes its time, so that there is something to interrupt."""

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        time.sleep(0.02)
        return super().run(shape, molecules, convergence, forces, stability)


class NoAnions(Solver):
    """Has no functions for more electrons."""

    def shape(self, molecule, coarse=False):
        if molecule.charge < 0:
            raise InvalidMolecule("no room for the electrons")
        return super().shape(molecule, coarse)


class Outage(Solver):
    """A machine on which every calculation ends its process, from the second one on."""

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        try:  # one step: of two workers that start at the same moment only one may be the first
            Path(os.environ["FAKE_OUTAGE"]).touch(exist_ok=False)
        except FileExistsError:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(shape, molecules, convergence, forces, stability)


class KilledOnce(Solver):
    """Somebody kills the process at every first try of a molecule."""

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        for m in molecules:
            mark = Path(f"{os.environ['FAKE_OUTAGE']}-{m.positions.tobytes().hex()[:40]}")
            if len(molecules) == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().run(shape, molecules, convergence, forces, stability)


class NoSecondLook(Solver):
    """Raises where instabilities are to be followed."""

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        if stability and any(5 in m.numbers for m in molecules):
            raise RuntimeError("no such eigenvalue")
        return super().run(shape, molecules, convergence, forces, stability)


class Fragile64(Solver):
    """In float64 it raises with sulphur hydride, and is too large for silane."""

    def stays_out(self, molecule, convergence):
        return bool({14, 16} & set(map(int, molecule.numbers)))

    def shape(self, molecule, coarse=False):
        if self.precision == "float64" and 14 in molecule.numbers:
            raise TooLarge("too large in float64")
        return super().shape(molecule, coarse)

    def memory_bytes(self, shape, forces=False, open_shell=False):
        return 2 if self.precision == "float64" else 1

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        if self.precision == "float64" and any(16 in m.numbers for m in molecules):
            raise RuntimeError("no such eigenvalue")
        return super().run(shape, molecules, convergence, forces, stability)


class WrongMachine(Solver):
    """Raises what is no fault of a molecule, at the step that FAKE_OUTAGE names."""

    def shape(self, molecule, coarse=False):
        self.may_fail("shape")
        return super().shape(molecule, coarse)

    def run(self, shape, molecules, convergence=None, forces=False, stability=False):
        self.may_fail("run")
        if convergence is not None:
            self.may_fail("retry")
        return super().run(shape, molecules, convergence, forces, stability)

    def may_fail(self, step):
        where, _, what = os.environ["FAKE_OUTAGE"].partition(" ")
        if where == step:
            raise {"setting": UsageError, "bug": ValueError, "import": ImportError}[what](
                "PYSCF_IPU_SWITCH=maybe: set it to on or off"
            )


def refuse(**level):
    raise UnknownBasis("unknown basis 'x': use one of sto-3g")


def only_in_the_parent(**level):
    if multiprocessing.parent_process() is not None:
        raise ImportError("no such engine here")
    return Solver(**level)
