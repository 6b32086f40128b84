"""Results on the host: NumPy arrays in float64, atoms and AOs in the order the user gave."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import PyTree

from pyscf_ipu.kohn_sham.hamiltonian import EnergyTerms
from pyscf_ipu.kohn_sham.program import Solution
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.results.analysed import Analysed
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes import conformer
from pyscf_ipu.shapes.core import core_forces, has_core
from pyscf_ipu.shapes.shape import Shape, count_ao
from pyscf_ipu.xc.dispersion.correction import Correction, correction

Number = TypeVar("Number")
Whole = TypeVar("Whole")
Truth = TypeVar("Truth")
Rows = TypeVar("Rows")
Text = TypeVar("Text")

ILL_CONDITIONED = "ill_conditioned"
FAR_HARTREE = 0.1
"""With a larger commutator the last density is no approach to an end: charges of 5 e and gaps of
70 Hartree were seen beyond, and nothing odd below."""
OF_DENSITY = ("energy", "homo", "lumo", "gap", "dipole", "mo_energy", "mulliken_charges")
"""What such a density says nothing about."""
OF_SPIN = ("s_squared", "spin_populations")
TERM_NAMES: tuple[str, ...] = EnergyTerms._fields
NUMBERS = (
    "energy",
    "homo",
    "lumo",
    "gap",
    "commutator_norm",
    "energy_std",
    "overlap_smallest",
)

CYCLES = ("ipu_cycles_low", "ipu_cycles_high")
"""What only simulated machines give, beside the bytes of a tile."""


@dataclass(frozen=True, repr=False)
class RKSResult(Analysed, Generic[Number, Whole, Truth, Rows, Text]):
    """One molecule (scalars), or a list of B molecules (leading axis B, in the order given).

    What has another length for every molecule is a sequence of B arrays for a list.
    """

    energy: Number
    """Hartree, with dispersion if the level has it; NaN where the status is not a result.

    It, levels, dipole and charges are NaN, too, where an SCF ends far from any solution: with a
    commutator of more than 0.1 Hartree."""
    homo: Number
    """Hartree; of open shells the highest occupied level of both spins."""
    lumo: Number
    """Hartree; NaN where there is no empty orbital; the lowest empty level of both spins."""
    gap: Number
    """Hartree; NaN where there is no empty orbital."""
    dipole: np.ndarray
    """[3] or [B, 3], e Bohr, about the origin of the coordinates."""
    converged: Truth
    """Whether energy and commutator met the precision's thresholds (in float32 a commutator that
    has stopped shrinking counts below 2e-4 Hartree), and the precision can hold the basis."""
    cycles: Whole
    """SCF cycles used, of all starts; with stability=True those of the SCF that counts; in "mixed"
    those in float64 where it needed them."""
    commutator_norm: Number
    """Largest element of the last commutator [F, D], Hartree."""
    energy_std: Number
    """Standard deviation of the last five cycle energies of the start that counts, Hartree."""
    overlap_smallest: Number
    """Smallest eigenvalue of the overlap matrix, without unit; in float32 to about 1e-6."""
    n_dropped: Whole
    """Eigenvectors of the overlap matrix that were left out, with eigenvalues up to 1e-6 (float64,
    mixed, and float32 with a basis set that reaches far)."""
    energy_terms: dict[str, Number]
    """Parts of the energy, Hartree, by name; they and `dispersion` add up to it."""
    status: Text
    """"converged", "not_converged", "fractional", "ill_conditioned", "nan" or "invalid: ...".

    Fractional: an open shell that is self-consistent only while orbitals near the Fermi level share
    electrons, and did not converge with full and empty ones.
    Ill-conditioned: the AOs are too nearly dependent for the precision; the numbers are wrong."""
    mo_energy: Rows
    """[N] Hartree, ascending; [N - n_dropped] where vectors were left out, as in PySCF.

    From `uks` it, mo_coeff and density_matrix have a first axis of two spins, alpha's first."""
    mulliken_charges: Rows
    """[A] e, in the order of the atoms."""
    jk: Text | None = None
    """How electron repulsion was computed: "exact" or "ri" (density fitting); "" if it was not."""
    dispersion: Number | None = None
    """The part of the energy, Hartree, that a correction such as D3(BJ) has added, with a composite
    method's counterpoise; None if the level has none.  The forces have its part, too."""
    mo_coeff: Rows | None = None
    """[N, N - n_dropped] in PySCF's AO order if asked for (orbitals=True), else None."""
    density_matrix: Rows | None = None
    """[N, N] in PySCF's AO order if asked for (orbitals=True), else None."""
    forces: Rows | None = None
    """[A, 3] -dE/dR in Hartree/Bohr if asked for (forces=True), else None; NaN unless the status
    is "converged"."""
    stable: Truth | None = None
    """Whether no rotation of the orbitals lowers the energy, if asked for (stability=True), else
    None; False unless the status is "converged"."""
    stable_unrestricted: Truth | None = None
    """Whether it stays so for orbitals that differ between alpha and beta electrons, if asked for
    (stable_unrestricted=True), else None; False unless the status is "converged"."""
    s_squared: Number | None = None
    """<S^2>, without unit, from `uks`, else None; S (S + 1) if no other spin is mixed in."""
    spin_populations: Rows | None = None
    """[A] Mulliken's alpha less beta electrons on every atom, from `uks`, else None."""
    followed: Whole | None = None
    """Lower states that were found by following an instability, if asked for, else None."""
    history: PyTree = None
    """Of every SCF cycle, by name, if asked for (history=True), else None: `energy`,
    `commutator_norm` and `gap`, each [cycles] in Hartree; in "mixed" those of float32."""
    ipu_cycles_low: Number | None = None
    """Cycles of this molecule's own run on the simulated IPU that computed it (machine="bow"), with
    perfect code; None on other machines."""
    ipu_cycles_high: Number | None = None
    """Cycles of that run with compiled code."""
    ipu_fullest_tile_bytes: Whole | None = None
    """Memory of the fullest tile in that run."""
    molecule: Molecule | list[Molecule | None] | None = None
    """What was computed; a list of B for a list."""
    settings: Settings | None = None
    """The level of theory; None for an empty list."""


class MoleculeResult(RKSResult[float, np.int64, np.bool_, np.ndarray, str]):
    """The result of a single molecule: the fields of `RKSResult` without an axis B."""


def from_solution(
    computed: tuple[Solution, np.ndarray | None],
    mol: Molecule,
    shape: Shape,
    settings: Settings,
    numerics: Precision,
    stability: bool,
) -> MoleculeResult:
    """One molecule's result: words added up in float64, no padding, AOs in PySCF's order.

    It has mo_coeff and density_matrix if the program's orbitals are there.

    Args:
        computed: what the programs of energies and, unless None, gradients gave.
        mol: the molecule.
        shape: its shape.
        settings: the level of theory; its dispersion is added here.
        numerics: those of the machine that computed it.
        stability: whether the program followed instabilities.
    """
    out, gradient = computed
    terms = [np.float64(to_float64(t)) for t in out.terms]
    n_kept = count_ao(mol.numbers, settings.basis, settings.cart) - int(out.n_dropped)
    mo_energy = np.asarray(out.orbital_energy, np.float64)[..., :n_kept]
    status = _status(out, numerics, np.append(mo_energy, terms))
    converged = status == "converged"
    atoms = np.argsort(conformer.slot_order(mol, shape, settings))[-mol.n_atoms :]
    added = _on_host(computed, mol, shape, settings=settings)
    order = conformer.ao_order(mol, shape, settings) if out.orbitals.size else None
    coefficients, density = _matrices(out, order, n_kept)
    homo, lumo = frontier(mo_energy, mol.n_occupied(settings.basis))
    row = MoleculeResult(
        energy=np.float64(sum(terms) + added.energy),
        homo=homo,
        lumo=lumo,
        gap=lumo - homo,
        dipole=_dipole(out, mol),
        converged=np.bool_(converged),
        cycles=np.int64(out.cycles),
        commutator_norm=np.float64(out.commutator),
        energy_std=_energy_std(out),
        overlap_smallest=np.float64(out.overlap_smallest),
        n_dropped=np.int64(out.n_dropped),
        energy_terms=dict(zip(TERM_NAMES, terms, strict=True)),
        status=status,
        mo_energy=mo_energy,
        mulliken_charges=np.asarray(out.charges, np.float64)[atoms],
        jk=settings.form(shape.n_ao),
        dispersion=None if settings.dispersion is None else np.float64(added.energy),
        mo_coeff=coefficients,
        density_matrix=density,
        forces=None if gradient is None else _forces(gradient[atoms], added.forces, converged),
        **_of_stability(out, converged, followed=stability),
        **_of_spin(out, atoms),
        **_of_the_run(out, added.energy, has_gap=bool(np.isfinite(lumo))),
        molecule=mol,
        settings=settings,
    )
    return row if converged or row.commutator_norm <= FAR_HARTREE else _without_density(row)


def frontier(levels: np.ndarray, n_occupied: tuple[int, int]) -> tuple[np.float64, np.float64]:
    """The highest occupied and the lowest empty level; NaN for one that there is not.

    Args:
        levels: [N], or [2, N] of alpha and beta electrons.
        n_occupied: orbitals of either spin.
    """
    spins = list(zip(np.atleast_2d(levels), n_occupied, strict=False))
    nan = np.float64("nan")
    homo = max((one[n - 1] for one, n in spins if n), default=nan)
    return homo, min((one[n] for one, n in spins if n < len(one)), default=nan)


def _of_stability(out: Solution, converged: bool, followed: bool) -> dict[str, PyTree]:
    """What was asked of the stability, by a program that followed instabilities or another."""
    fields: dict[str, PyTree] = {}
    if followed:
        fields |= {"stable": np.bool_(out.stable and converged), "followed": np.int64(out.followed)}
    if out.stable_unrestricted is not None:
        fields["stable_unrestricted"] = np.bool_(out.stable_unrestricted and converged)
    return fields


def _of_spin(out: Solution, atoms: np.ndarray) -> dict[str, PyTree]:
    """What only open shells have, with populations of these slots."""
    if out.spin is None:
        return {}
    populations = np.asarray(out.spin.populations, np.float64)[atoms]
    return {"s_squared": np.float64(out.spin.squared), "spin_populations": populations}


def _dipole(out: Solution, mol: Molecule) -> np.ndarray:
    """The dipole moment; coordinates were centred, which that of a charged molecule notices."""
    return np.asarray(out.dipole, np.float64) + mol.charge * mol.positions.mean(axis=0)


def _of_the_run(out: Solution, dispersion: float, has_gap: bool) -> dict[str, PyTree]:
    """The run: its cycles, if they are kept, and what a simulated machine says of it."""
    fields: dict[str, PyTree] = {
        name: (np.int64 if name.endswith("bytes") else np.float64)(to_float64(pair))
        for name, pair in (out.figures or {}).items()
    }
    return fields | {"history": _history(out, int(out.cycles), dispersion, has_gap=has_gap)}


def _forces(gradient: np.ndarray, of_host: np.ndarray, converged: bool) -> np.ndarray:
    """Minus the gradient of the energy, with the host's part; NaN without convergence."""
    return np.where(converged, of_host - np.asarray(gradient, np.float64), np.nan)


def _on_host(
    computed: tuple[Solution, np.ndarray | None], mol: Molecule, shape: Shape, settings: Settings
) -> Correction:
    """Dispersion, and the forces of the core potentials at the density if there are forces."""
    out, gradient = computed
    added = correction(settings.dispersion, mol.numbers, mol.positions, charge=mol.charge)
    if gradient is None or not has_core(shape, settings):
        return added
    order = conformer.ao_order(mol, shape, settings)
    density = np.asarray(out.density, np.float64)[..., order[:, None], order]
    if density.ndim == 3:
        density = density.mean(axis=0)
    return added._replace(forces=added.forces + core_forces(mol, settings, density))


def _energy_std(out: Solution) -> float:
    """Standard deviation of the latest cycles' energies; NaN if there were none."""
    energies = to_float64(out.energies)
    energies = energies[energies != np.inf]  # inf beyond the cycles that this start had
    return float(np.std(energies)) if energies.size else float("nan")


def _matrices(
    out: Solution, order: np.ndarray | None, n_kept: int
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """Coefficients and density matrix with AOs in this order; None without one."""
    if order is None:
        return None, None
    coefficients = np.asarray(out.orbitals, np.float64)[..., order, :n_kept]
    density = np.asarray(out.density, np.float64)[..., order[:, None], order]
    return coefficients, density if density.ndim == 2 else 0.5 * density


def _without_density(row: MoleculeResult) -> MoleculeResult:
    """NaN in what a density far from any solution says."""
    terms = dict.fromkeys(row.energy_terms, np.float64("nan"))
    names = OF_DENSITY if row.s_squared is None else (*OF_DENSITY, *OF_SPIN)
    nothing = {name: getattr(row, name) * np.nan for name in names}
    return replace(row, energy_terms=terms, **nothing)


def _history(
    out: Solution, cycles: int, dispersion: float, has_gap: bool
) -> dict[str, np.ndarray] | None:
    """The cycles that there were, in float64; none if "mixed" restarted in float64."""
    if out.history is None:
        return None
    if np.isposinf(out.history.energy.hi[:1]).any():
        cycles = 0
    gap = np.asarray(out.history.gap, np.float64)
    record = {
        "energy": to_float64(out.history.energy) + dispersion,
        "commutator_norm": np.asarray(out.history.commutator, np.float64),
        "gap": gap if has_gap else np.full_like(gap, np.nan),
    }
    return {name: values[:cycles] for name, values in record.items()}


def _status(out: Solution, numerics: Precision, numbers: np.ndarray) -> str:
    """The status of a molecule that was computed, with these energies."""
    if not np.isfinite(numbers).all():
        return "nan"
    if not numerics.holds(float(out.overlap_smallest)):
        return ILL_CONDITIONED
    if out.converged:
        return "converged"
    return "fractional" if out.spin is not None and out.spin.fractional else "not_converged"


def invalid(reason: str, n_atoms: int, open_shell: bool = False) -> MoleculeResult:
    """The result of a molecule that was not computed; NaN in every number."""
    nan, nothing = np.float64("nan"), np.zeros((0, 0))
    return MoleculeResult(
        **dict.fromkeys(NUMBERS, nan),
        dipole=np.full(3, nan),
        converged=np.bool_(False),
        cycles=np.int64(0),
        n_dropped=np.int64(0),
        energy_terms=dict.fromkeys(TERM_NAMES, nan),
        status=f"invalid: {reason}",
        mo_energy=np.zeros(0),
        mulliken_charges=np.full(n_atoms, nan),
        jk="",
        dispersion=nan,
        mo_coeff=nothing,
        density_matrix=nothing,
        forces=np.full((n_atoms, 3), nan),
        stable=np.bool_(False),
        followed=np.int64(0),
        s_squared=nan if open_shell else None,
        spin_populations=np.full(n_atoms, nan) if open_shell else None,
        **dict.fromkeys(CYCLES, nan),
        ipu_fullest_tile_bytes=np.int64(-1),
    )


def stacked(
    results: Sequence[MoleculeResult],
    orbitals: bool = False,
    forces: bool = False,
    stability: bool = False,
    prices: bool = False,
    spins: bool = False,
) -> RKSResult:
    """Results of single molecules as one, with a leading axis B; B may be 0."""

    def column(name: str, dtype: type = np.float64) -> np.ndarray:
        return np.array([getattr(one, name) for one in results], dtype)

    rows = ["status", "jk", "mo_energy", "mulliken_charges", "molecule"]
    rows += ["mo_coeff", "density_matrix"] * orbitals + ["forces"] * forces
    rows += ["spin_populations"] * spins
    if any(one.history is not None for one in results):
        rows.append("history")
    fields: dict[str, PyTree] = {name: [getattr(one, name) for one in results] for name in rows}
    fields |= {name: column(name) for name in NUMBERS}
    if stability:
        fields |= {"stable": column("stable", bool), "followed": column("followed", np.int64)}
    if spins:
        fields["s_squared"] = column("s_squared")
    if any(one.stable_unrestricted is not None for one in results):
        fields["stable_unrestricted"] = column("stable_unrestricted", bool)
    settings = results[0].settings if results else None
    if settings is not None and settings.dispersion is not None:
        fields["dispersion"] = column("dispersion")
    if prices:
        fields |= {name: column(name) for name in CYCLES}
        fields["ipu_fullest_tile_bytes"] = column("ipu_fullest_tile_bytes", np.int64)
    terms = np.array([[one.energy_terms[name] for name in TERM_NAMES] for one in results])
    terms = terms.reshape(len(results), len(TERM_NAMES))
    return RKSResult(
        **fields,
        dipole=column("dipole").reshape(len(results), 3),
        converged=column("converged", bool),
        cycles=column("cycles", np.int64),
        n_dropped=column("n_dropped", np.int64),
        energy_terms={name: terms[:, i] for i, name in enumerate(TERM_NAMES)},
        settings=settings,
    )
