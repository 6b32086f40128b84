"""What the commands say of one molecule: text for people, or one record as JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyscf_ipu.base.command_line.targets import TO_STDOUT, put_json
from pyscf_ipu.base.terminal import NotPrinted, say, text_table
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.entries import plain, without_nan
from pyscf_ipu.results.orbital_files import mole_of

if TYPE_CHECKING:
    from pyscf.scf.hf import SCF

    from pyscf_ipu.results.result import RKSResult
    from pyscf_ipu.settings import Settings
    from pyscf_ipu.solver.solver import Solver, Wanted


class Report:
    """Text that is printed as it comes, unless JSON is; and the record for JSON.

    Args:
        target: where JSON goes: None for nowhere.
        has_files: files are written, too: they are, also if nothing can be printed.
    """

    def __init__(self, target: Path | None, has_files: bool = False) -> None:
        self.target, self.has_files = target, has_files
        self.record: dict[str, object] = {}
        self._failed: NotPrinted | None = None

    def add(self, text: str, **parts: object) -> None:
        """Say something, and put its parts into the record."""
        if self.target != TO_STDOUT:
            try:
                say(text)
            except NotPrinted as error:
                if not self.has_files:
                    raise
                self._failed = error
        self.record |= {name: without_nan(plain(part)) for name, part in parts.items()}

    def finish(self) -> None:
        """Print or write the record, if it was asked for."""
        if self.target is not None:
            put_json(json.dumps(self.record, indent=2, allow_nan=False), self.target)
        if self._failed:
            raise self._failed


def single_point(
    molecule: Molecule,
    solver: Solver,
    report: Report,
    wanted: Wanted,
    compare: bool = False,
) -> RKSResult:
    """Compute one molecule and report it; see the options of the commands.

    With a guess in `wanted` it is computed as an open shell.

    Raises:
        ConvergenceError: the SCF does not converge.
        InvalidMolecule: the molecule cannot be computed.
    """
    from pyscf_ipu.api.energies import computed

    start = time.perf_counter()
    result = computed(molecule, solver, wanted, throw=True)
    seconds = time.perf_counter() - start
    record = result.to_dict()
    for name in ("mo_coeff", "density_matrix"):  # --molden FILE has the orbitals
        record.pop(name, None)
    report.add(f"{result!r}\n{seconds:.1f} s, compiling included", result=record)
    if result.forces is not None:
        report.add(force_table(molecule, np.asarray(result.forces)))
    if compare:
        compare_with_pyscf(molecule, solver, result, report=report)
    return result


def compare_with_pyscf(
    molecule: Molecule, solver: Solver, result: RKSResult, report: Report
) -> None:
    """Compute the same with PySCF in float64, and report both.

    Dispersion is the same number in both.
    """
    from pyscf_ipu.nanodft.table import pyscf_forces
    from pyscf_ipu.results.result import frontier
    from pyscf_ipu.xc.dispersion.correction import correction

    start = time.perf_counter()
    level = solver.settings
    unrestricted = result.s_squared is not None
    field = pyscf_field(molecule, level.without_dispersion(), unrestricted=unrestricted)
    added = correction(
        level.dispersion, molecule.numbers, molecule.positions, charge=molecule.charge
    )
    homo, lumo = frontier(np.asarray(field.mo_energy), molecule.n_occupied(level.basis))
    dipole = field.dip_moment(unit="AU", verbose=0, origin=np.zeros(3))
    theirs = {
        "energy": float(field.e_tot) + added.energy,
        "homo": float(homo),
        "gap": float(lumo - homo),
        "dipole": np.asarray(dipole),
    }
    if unrestricted:
        theirs["s_squared"] = float(field.spin_square()[0])
    if result.forces is not None:
        theirs["forces"] = pyscf_forces(field) + added.forces
    seconds = time.perf_counter() - start
    rows: list[tuple[object, ...]] = [("", "here", "PySCF", "difference", "")]
    for name in ("energy", "homo", "gap"):
        ours, other = float(getattr(result, name)), float(theirs[name])
        rows.append((name, f"{ours:.6f}", f"{other:.6f}", f"{ours - other:+.1e}", "Hartree"))
    if result.s_squared is not None:
        ours, other = float(result.s_squared), theirs["s_squared"]
        rows.append(("s_squared", f"{ours:.6f}", f"{other:.6f}", f"{ours - other:+.1e}", ""))
    for name, unit in (("dipole", "e Bohr"), ("forces", "Hartree/Bohr")):
        if name in theirs:
            largest = np.abs(np.asarray(getattr(result, name)) - theirs[name]).max()
            rows.append((name, "", "", f"{largest:.1e}", f"{unit}, largest"))
    error = (float(result.energy) - float(theirs["energy"])) * HARTREE_TO_EV
    both = "" if level.dispersion is None else "; both with the same dispersion correction"
    state = "" if field.converged else "\nPySCF did not converge: differences are not errors here"
    report.add(
        "\n".join(text_table(rows, "<0 >14 >14 >10 <0", gap="  "))
        + f"\nenergy - PySCF's: {error:+.1e} eV; PySCF took {seconds:.1f} s{both}{state}",
        pyscf={**theirs, "converged": bool(field.converged)},
    )


def pyscf_field(molecule: Molecule, settings: Settings, unrestricted: bool = False) -> SCF:
    """PySCF's mean-field object at the same level of theory, after its SCF (see `converged`)."""
    mole = mole_of(molecule, settings)
    field = settings.pyscf_method(mole, unrestricted=unrestricted)
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-11, 1e-7, 200
    field.kernel()
    return field


def force_table(molecule: Molecule, forces: np.ndarray) -> str:
    """Forces [A, 3] in Hartree/Bohr as text."""
    rows: list[tuple[object, ...]] = [("", "x", "y", "z")]
    for symbol, force in zip(molecule.symbols, forces, strict=True):
        rows.append((symbol, *(f"{x:z.6f}" for x in force)))
    return "\n".join(["forces, Hartree/Bohr", *text_table(rows, "<2 >11 >11 >11")])


def xyz_text(molecule: Molecule, energy: float) -> str:
    """An extended XYZ frame in Angstrom, with charge and energy (eV, as ASE reads it)."""
    spin = f" multiplicity={molecule.multiplicity}" if molecule.multiplicity > 1 else ""
    comment = f"charge={molecule.charge}{spin} energy={energy * HARTREE_TO_EV:.6f} pbc=F"
    lines = [str(molecule.n_atoms), f"Properties=species:S:1:pos:R:3 {comment}"]
    positions = molecule.positions * BOHR_TO_ANGSTROM
    for symbol, (x, y, z) in zip(molecule.symbols, positions, strict=True):
        lines.append(f"{symbol:<2} {x:14.8f} {y:14.8f} {z:14.8f}")
    return "\n".join(lines)
