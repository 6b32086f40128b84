"""The tables of the `nanodft` command: an SCF cycle by cycle, and forces, beside PySCF's result.

Energies are in Hartree, gap and error in eV.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from pyscf import dft, scf
from pyscf.scf.hf import SCF
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.nanodft.dft import FUNCTIONALS, EnergyParts, Result, Theory, mole_of

WIDTH = 88  # of the table, where the output is no terminal
GOOD_EV, FAIR_EV = 1e-3, 0.0434  # green below, yellow below one kcal/mol, red above
PYSCF_CYCLES = 200


class Reference(NamedTuple):
    """PySCF's mean-field object, and its result in nanoDFT's form."""

    field: SCF
    result: Result

    @property
    def label(self) -> str:
        """The label of its row; a question mark says that PySCF has not converged."""
        return "P" if self.field.converged else "P?"

    def shown(self, error_ev: float, text: str) -> str:
        """A difference from PySCF as markup: coloured only if it is an error of nanoDFT."""
        return f"[{colour(error_ev)}]{text}[/]" if self.field.converged else text


def wide_console() -> Console:
    """The console of the tables; it has a fixed width where the output is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


@contextlib.contextmanager
def growing_table(
    console: Console, reference: Reference | None
) -> Iterator[Callable[[Result], None]]:
    """A table on the console, as a function that adds a cycle; PySCF's row comes last."""
    table = cycle_table(reference)
    try:
        with Live(table, console=console, auto_refresh=False) as live:

            def on_cycle(result: Result) -> None:
                table.add_row(*cycle_row(str(result.cycles), result, reference))
                live.refresh()

            yield on_cycle
            if reference:
                table.add_section()
                table.add_row(*cycle_row(reference.label, reference.result, None), "")
    finally:
        if not console.is_terminal:
            console.print()  # Live leaves the last line open there


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
    """The colour of an error."""
    return "green" if abs(error_ev) < GOOD_EV else "yellow" if abs(error_ev) < FAIR_EV else "red"


def print_difference(console: Console, ours: Result, reference: Reference) -> None:
    """The error of the energy, below a warning if PySCF has not converged."""
    if not reference.field.converged:
        console.print(
            f"PySCF did not converge in {PYSCF_CYCLES} cycles: row P? is where it stopped, and "
            "differences from it are not errors of nanoDFT",
            style="yellow",
            soft_wrap=True,
        )
    error = (ours.energy - reference.result.energy) * HARTREE_TO_EV
    line = f"energy - PySCF's (row {reference.label}): {error:+.2e} eV"
    console.print(reference.shown(error, line))


def force_table(molecule: Molecule, forces: np.ndarray, reference: Reference | None) -> Table:
    """Forces of every atom in Hartree/Bohr, and their difference from PySCF's."""
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


def pyscf_result(molecule: Molecule, level: Theory) -> Reference:
    """PySCF's result at the same level of theory."""
    _, exact_exchange, name = FUNCTIONALS[level.xc.lower()]
    mole = mole_of(molecule, level)
    if name == "hf":
        field = scf.RHF(mole)
    else:
        field = dft.RKS(mole, xc=name)
        field.grids.level = level.grid_level
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-11, 1e-7, PYSCF_CYCLES
    field.chkfile = None
    field.kernel()
    density = np.asarray(field.make_rdm1())
    coulomb, exchange = field.get_jk()
    known = [
        np.vdot(density, mole.intor("int1e_kin")),
        np.vdot(density, mole.intor("int1e_nuc")),
        np.vdot(density, coulomb) / 2,
        -exact_exchange * np.vdot(density, exchange) / 4,
    ]
    nuclear = mole.energy_nuc()
    semilocal = field.e_tot - nuclear - sum(known)
    fock, levels = np.asarray(field.get_fock()), np.asarray(field.mo_energy)
    occupied = molecule.n_electrons // 2
    gap = levels[occupied] - levels[occupied - 1] if occupied < len(levels) else np.nan
    result = Result(
        energy=float(field.e_tot),
        terms=EnergyParts._make(map(float, (*known, semilocal, nuclear))),
        mo_energy=levels,
        mo_coeff=np.asarray(field.mo_coeff),
        density=density,
        fock=fock,
        gap=float(gap),
        cycles=int(field.cycles),
        commutator=math.nan,
    )
    return Reference(field, result)


def pyscf_forces(field: SCF) -> np.ndarray:
    """PySCF's forces [A, 3] in Hartree/Bohr, with the response of the grid."""
    return -np.asarray(field.nuc_grad_method().set(grid_response=True).kernel())
