"""`frequencies`: harmonic vibrations, infrared intensities and thermochemistry, through ASE.

ASE's `Infrared` displaces every atom both ways along x, y and z, and takes differences of forces
and dipoles: 6 A + 1 calculations.  Of its 3 A modes those that are most like translations and
rotations of the whole are left out, whatever their size: on a grid a rotation can have a larger
wavenumber than a soft torsion.
"""

from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Unpack

import numpy as np
from jaxtyping import Float

from pyscf_ipu.api.advice import explains_keywords
from pyscf_ipu.api.calculator import Calculator
from pyscf_ipu.api.energies import solver_for
from pyscf_ipu.base.errors import MissingPackage, UsageError
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.host.temporaries import scratch_folder
from pyscf_ipu.base.terminal import text_table
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.entries import plain
from pyscf_ipu.settings import LevelKeywords
from pyscf_ipu.solver.solver import Solver

try:
    from ase import Atoms, units
    from ase.thermochemistry import IdealGasThermo
    from ase.vibrations import Infrared

    from pyscf_ipu.api.normal_modes import displacements, likeness, rigid_motions, rotor, signed
except ImportError as error:
    raise MissingPackage(
        f"frequencies takes its displacements from ASE: run {how_to_install('ase')}"
    ) from error

KM_PER_MOL = 42.255
"""km/mol in one (Debye/Angstrom)^2/amu: D. Porezag, M. R. Pederson, Phys. Rev. B 54, 7830 (1996),
doi:10.1103/PhysRevB.54.7830."""

UNITS = {
    "wavenumbers": "cm^-1",
    "rigid_wavenumbers": "cm^-1",
    "intensities": "km/mol",
    "temperature_kelvin": "K",
    "pressure_pascal": "Pa",
    "entropy": "Hartree/Kelvin",
    "largest_force": "Hartree/Bohr",
    **dict.fromkeys(("energy", "zero_point_energy", "enthalpy", "gibbs_energy"), "Hartree"),
}
AT_REST = 1e-3
"""Hartree/Bohr: a larger force at the geometry is remarked on."""


LONGEST_STEP_BOHR = 0.1
"""0.02 shifts frequencies by up to 1.4 1/cm, and a shift grows with the step's square."""


@dataclass(frozen=True, repr=False)
class Frequencies:
    """Harmonic vibrations of a molecule, and its ideal gas; V is 3 A - 6, or 3 A - 5 if linear."""

    molecule: Molecule
    """The geometry."""
    energy: float
    """There, in Hartree."""
    largest_force: float
    """There, in Hartree/Bohr; frequencies mean something at a minimum only."""
    wavenumbers: Float[np.ndarray, " V"]
    """cm^-1, ascending; a negative number stands for an imaginary one."""
    intensities: Float[np.ndarray, " V"]
    """Infrared, in km/mol."""
    modes: Float[np.ndarray, "V A 3"]
    """Displacements of the atoms, each mode of length 1, without mass weighting."""
    rigid_wavenumbers: Float[np.ndarray, " _"]
    """cm^-1 of the modes that were taken for translations and rotations: their distance from 0
    shows the errors of grid, differences and precision."""
    temperature_kelvin: float
    """Of the three below."""
    pressure_pascal: float
    """Of entropy and Gibbs energy."""
    symmetry_number: int
    """Of the rotation, in the entropy."""
    zero_point_energy: float
    """Hartree; imaginary modes count as none, also below."""
    enthalpy: float
    """Hartree, with the energy."""
    entropy: float
    """Hartree/Kelvin."""
    gibbs_energy: float
    """Hartree, with the energy."""

    @property
    def n_imaginary(self) -> int:
        """Imaginary modes: 0 at a minimum, 1 at a transition state."""
        return int(np.sum(self.wavenumbers < 0))

    def __repr__(self) -> str:
        rows: list[tuple[object, ...]] = [("", "cm^-1", "km/mol")]
        for i, (number, intensity) in enumerate(
            zip(self.wavenumbers, self.intensities, strict=True), start=1
        ):
            imaginary = "i" if number < 0 else " "
            rows.append((i, f"{abs(number):.1f}{imaginary}", f"{intensity:.2f}"))
        rigid = np.abs(self.rigid_wavenumbers).max()
        quantities = [
            ("zero-point energy", self.zero_point_energy, "Hartree"),
            ("enthalpy", self.enthalpy, "Hartree"),
            ("entropy * T", self.entropy * self.temperature_kelvin, "Hartree"),
            ("Gibbs energy", self.gibbs_energy, "Hartree"),
        ]
        return "\n".join(
            [
                f"{self.molecule}: {len(self.wavenumbers)} vibrations, {self.n_imaginary} of them "
                "imaginary (i)",
                *text_table(rows, ">0 >10 >10"),
                f"translations and rotations, which should be 0: up to {rigid:.1f} cm^-1; "
                f"largest force {self.largest_force:.1e} Hartree/Bohr",
                *self._remarks(),
                f"ideal gas at {self.temperature_kelvin:g} K and {self.pressure_pascal:g} Pa, "
                f"symmetry number {self.symmetry_number}",
                *text_table([(a, f"{b:.6f}", c) for a, b, c in quantities], "<0 >0 <0", gap="  "),
            ]
        )

    def _remarks(self) -> list[str]:
        """What is wrong with the geometry."""
        if self.largest_force <= AT_REST:
            return []
        return ["not a minimum, so these numbers mean little: optimise first, at the same level"]

    def to_dict(self) -> dict[str, object]:
        """The numbers as plain Python values, with their units."""
        names = [f.name for f in fields(self) if f.name != "molecule"]
        return {**{name: plain(getattr(self, name)) for name in names}, "units": dict(UNITS)}


@explains_keywords
def frequencies(
    molecule: Molecule,
    *,
    temperature_kelvin: float = 298.15,
    pressure_pascal: float = 101325.0,
    symmetry_number: int = 1,
    step_bohr: float = 0.01,
    solver: Solver | None = None,
    **level: Unpack[LevelKeywords],
) -> Frequencies:
    """Harmonic frequencies at a geometry, which should be a minimum: `optimize` finds one.

    Args:
        molecule: one Molecule.
        level: as for `rks`, but precision is "float64" unless given: float32 forces are too noisy
            for differences.  On grid level 0 the stretches of water are off by 150 cm^-1.
        temperature_kelvin: of the thermochemistry.
        pressure_pascal: of the thermochemistry.
        symmetry_number: of rotation, 2 for water and 12 for methane.
        step_bohr: length of the displacements.
        solver: compiled programs to use, at its settings.

    Raises:
        MissingPackage: ASE is not installed.
        TypeError: this is not one Molecule.
        UsageError: a setting or a number cannot be used, or no temporary file can be written.
        InvalidMolecule: the molecule cannot be computed.
        ConvergenceError: an SCF does not converge.
    """
    if not isinstance(molecule, Molecule):
        raise TypeError(f"one Molecule is needed, not a {type(molecule).__name__}")
    _check_conditions(
        symmetry_number,
        temperature_kelvin=temperature_kelvin,
        pressure_pascal=pressure_pascal,
        step_bohr=step_bohr,
    )
    if solver is None:
        level["precision"] = level.get("precision") or "float64"
    solver = solver_for(solver, **level)
    molecule.check(solver.settings.precision, open_shell=True)
    atoms = molecule.to_ase()
    atoms.calc = Calculator(charge=molecule.charge, solver=solver)
    conditions = temperature_kelvin, pressure_pascal
    return _of_displacements(
        molecule, atoms, step_bohr, conditions=conditions, symmetry_number=symmetry_number
    )


def _of_displacements(
    molecule: Molecule,
    atoms: Atoms,
    step_bohr: float,
    conditions: tuple[float, float],
    symmetry_number: int,
) -> Frequencies:
    """Vibrations from forces at displaced geometries; conditions in Kelvin and Pascal."""
    forces = atoms.get_forces() / FORCE_TO_EV_PER_ANGSTROM
    energy = atoms.get_potential_energy()
    infrared, energies_ev = _displaced(atoms, step_bohr)
    rigid = rigid_motions(atoms)
    vibrating = np.sort(np.argsort(likeness(infrared.modes, rigid))[: 3 * len(atoms) - len(rigid)])
    wavenumbers = signed(energies_ev) / units.invcm
    gas = IdealGasThermo(
        [e for e in energies_ev[vibrating] if e.imag == 0],
        rotor(len(rigid)),
        potentialenergy=energy,
        atoms=atoms,
        symmetrynumber=symmetry_number,
        spin=molecule.unpaired / 2,
        vib_selection="all",
    )
    return Frequencies(
        molecule=molecule,
        energy=energy / HARTREE_TO_EV,
        largest_force=float(np.linalg.norm(forces, axis=1).max()),
        wavenumbers=wavenumbers[vibrating],
        intensities=infrared.intensities[vibrating] * KM_PER_MOL,
        modes=displacements(infrared.modes, atoms)[vibrating],
        rigid_wavenumbers=np.delete(wavenumbers, vibrating),
        symmetry_number=symmetry_number,
        **_thermochemistry(gas, *conditions),
    )


def _thermochemistry(gas: IdealGasThermo, t: float, p: float) -> dict[str, float]:
    """The fields of an ideal gas at t Kelvin and p Pascal, Hartree."""
    return {
        "temperature_kelvin": t,
        "pressure_pascal": p,
        "zero_point_energy": float(gas.get_ZPE_correction()) / HARTREE_TO_EV,
        "enthalpy": float(gas.get_enthalpy(t, verbose=False)) / HARTREE_TO_EV,
        "entropy": float(gas.get_entropy(t, p, verbose=False)) / HARTREE_TO_EV,
        "gibbs_energy": float(gas.get_gibbs_energy(t, p, verbose=False)) / HARTREE_TO_EV,
    }


def _displaced(atoms: Atoms, step_bohr: float) -> tuple[Infrared, np.ndarray]:
    """ASE's vibrations from forces at displaced geometries, and their quanta in eV."""
    with scratch_folder() as folder:
        # ASE keeps every displacement in a file, to resume after an interruption.
        infrared = Infrared(atoms, name=f"{folder}/ir", delta=step_bohr * BOHR_TO_ANGSTROM)
        infrared.run()
        return infrared, infrared.get_energies()


def _check_conditions(symmetry_number: object, **positive: float) -> None:
    """Raise UsageError for numbers that no gas or no displacement can have."""
    for name, value in positive.items():
        if not isinstance(value, Real) or not 0 < value < np.inf:
            raise UsageError(f"{name} is {value!r}: give a number above 0")
        if name == "step_bohr" and value > LONGEST_STEP_BOHR:
            raise UsageError(f"step_bohr is {value}: give at most {LONGEST_STEP_BOHR}")
    if not isinstance(symmetry_number, Integral) or symmetry_number < 1:
        raise UsageError(f"symmetry_number is {symmetry_number!r}: give a whole number, at least 1")
