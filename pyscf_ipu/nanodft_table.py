"""What the `nanodft` command prints: an SCF cycle by cycle, beside PySCF's result.

Energies of the table are in Hartree, gap and error in eV.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from pyscf import dft, scf
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pyscf_ipu import Molecule, Settings, enable_disk_cache, nanodft
from pyscf_ipu.nanodft import FUNCTIONALS, Result, Terms
from pyscf_ipu.nanodft_command import Nanodft
from pyscf_ipu.nanodft_integrals import mole_of
from pyscf_ipu.nanodft_molecules import molecule_from_text
from pyscf_ipu.units import HARTREE_TO_EV

WIDTH = 88  # of the table, where the output is no terminal
GOOD_EV, FAIR_EV = 1e-3, 0.0434  # green below, yellow below one kcal/mol, red above
PYSCF_CYCLES = 200


class Reference(NamedTuple):
    """PySCF's mean-field object, and what it found in nanoDFT's form."""

    field: Any
    result: Result

    @property
    def label(self) -> str:
        """Of its row; a question mark says that PySCF has not converged."""
        return "P" if self.field.converged else "P?"

    def shown(self, error_ev: float, text: str) -> str:
        """A difference from it as markup: coloured only where it is an error of ours."""
        return f"[{colour(error_ev)}]{text}[/]" if self.field.converged else text


def run(args: Nanodft) -> None:
    """Compute and print.

    Raises InvalidMolecule or ValueError for what cannot be computed, ConvergenceError.
    """
    start = time.perf_counter()
    molecule = molecule_from_text(args.molecule, args.charge)
    settings = Settings(
        args.basis, args.xc, args.grid_level, args.precision, max_cycles=args.max_cycles
    )
    nanodft.check(molecule, settings, args.integrals)
    enable_disk_cache()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    reference = pyscf_result(molecule, settings) if args.compare else None
    table = cycle_table(reference)
    try:
        with Live(table, console=console, auto_refresh=False) as live:

            def on_cycle(result: Result) -> None:
                table.add_row(*cycle_row(str(result.cycles), result, reference))
                live.refresh()

            found = nanodft.scf(molecule, settings, args.integrals, on_cycle)
            if reference:
                table.add_section()
                table.add_row(*cycle_row(reference.label, reference.result, None), "")
    finally:
        if not console.is_terminal:
            console.print()  # Live leaves the last line open there
    console.print(
        f"{molecule!r}, {args.xc}/{args.basis}, grid level {args.grid_level}, {args.precision}, "
        f"integrals: {args.integrals}\n"
        f"energy {found.energy:.9f} Hartree (of which the nuclei's repulsion "
        f"{found.terms.nuclear_repulsion:.6f}), gap {found.gap * HARTREE_TO_EV:.4f} eV, "
        f"{len(found.mo_energy)} AOs, {molecule.n_electrons} electrons, "
        f"{found.cycles} cycles, {time.perf_counter() - start:.1f} s",
        soft_wrap=True,
    )
    if reference:
        if not reference.field.converged:
            console.print(
                f"PySCF did not converge in {PYSCF_CYCLES} cycles: row P? is where it stopped, and "
                "differences from it are no errors",
                style="yellow",
                soft_wrap=True,
            )
        error = (found.energy - reference.result.energy) * HARTREE_TO_EV
        line = f"energy - PySCF's (row {reference.label}): {error:+.2e} eV"
        console.print(reference.shown(error, line))
    if args.forces:
        values = nanodft.forces(molecule, found, settings, args.integrals)
        console.print(force_table(molecule, values, reference))


def cycle_table(reference: Reference | None) -> Table:
    """An empty table with the columns of `cycle_row`."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    heads = ["", "energy", "kinetic", "attract", "Coulomb", "exchange", "xc", "gap/eV", "\\[F,D]"]
    for head in [*heads, "error/eV"] if reference else heads:
        table.add_column(head, justify="right", no_wrap=True, header_style="bold")
    return table


def cycle_row(label: str, result: Result, reference: Reference | None) -> list[str]:
    """Energy, its terms, gap, commutator and error of one cycle, as text."""
    row = [label, f"[bold]{result.energy:.6f}[/]"]
    row += [f"{term:.3f}" for term in result.terms[:5]]
    commutator = "" if math.isnan(result.commutator) else f"{result.commutator:.0e}"
    row += [f"{result.gap * HARTREE_TO_EV:.3f}", commutator]
    if reference:
        error = (result.energy - reference.result.energy) * HARTREE_TO_EV
        row.append(reference.shown(error, f"{error:+.1e}"))
    return row


def colour(error_ev: float) -> str:
    """How an error is shown."""
    return "green" if abs(error_ev) < GOOD_EV else "yellow" if abs(error_ev) < FAIR_EV else "red"


def force_table(molecule: Molecule, forces: np.ndarray, reference: Reference | None) -> Table:
    """Forces of every atom in Hartree/Bohr, and how far they are from PySCF's."""
    theirs = pyscf_forces(reference.field) if reference else None
    table = Table(box=None, padding=(0, 2, 0, 0), title="forces / (Hartree/Bohr)")
    heads = ["", "x", "y", "z"]
    if reference:
        heads.append("- PySCF's" if reference.field.converged else "- PySCF's (not converged)")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True, header_style="bold")
    for i, (symbol, force) in enumerate(zip(molecule.symbols, forces, strict=True)):
        row = [symbol, *(f"{x:.6f}" for x in force)]
        if theirs is not None:
            row.append(f"{np.abs(force - theirs[i]).max():.0e}")
        table.add_row(*row)
    return table


def pyscf_field(molecule: Molecule, settings: Settings) -> Any:
    """PySCF's mean-field object at the same level of theory; `converged` says whether it is."""
    mole = mole_of(molecule, settings)
    if settings.xc.lower() == "hf":
        field = scf.RHF(mole)
    else:
        field = dft.RKS(mole, xc=FUNCTIONALS[settings.xc.lower()][2])
        field.grids.level = settings.grid_level
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-11, 1e-7, PYSCF_CYCLES
    field.kernel()
    return field


def pyscf_result(molecule: Molecule, settings: Settings) -> Reference:
    """What PySCF finds at the same level of theory."""
    field = pyscf_field(molecule, settings)
    mole, density = field.mol, np.asarray(field.make_rdm1())
    coulomb, exchange = field.get_jk()
    known = [
        np.vdot(density, mole.intor("int1e_kin")),
        np.vdot(density, mole.intor("int1e_nuc")),
        np.vdot(density, coulomb) / 2,
        -FUNCTIONALS[settings.xc.lower()][1] * np.vdot(density, exchange) / 4,
    ]
    nuclear = mole.energy_nuc()
    semilocal = field.e_tot - nuclear - sum(known)
    fock, levels = np.asarray(field.get_fock()), np.asarray(field.mo_energy)
    occupied = molecule.n_electrons // 2
    gap = levels[occupied] - levels[occupied - 1] if occupied < len(levels) else np.nan
    terms = Terms(*map(float, (*known, semilocal, nuclear)))
    found = Result(
        float(field.e_tot), terms, levels, np.asarray(field.mo_coeff), density, fock, float(gap),
        int(field.cycles), math.nan,
    )  # fmt: skip
    return Reference(field, found)


def pyscf_forces(field: Any) -> np.ndarray:
    """PySCF's forces [A, 3] in Hartree/Bohr, with the response of the grid.

    They mean nothing unless `field.converged`.
    """
    gradient = field.nuc_grad_method()
    if hasattr(gradient, "grid_response"):
        gradient.grid_response = True
    return -np.asarray(gradient.kernel())
