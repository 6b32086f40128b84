"""The retry ladder: what is tried, in order, when the SCF of a conformer does not converge.

A conformer that converges at once is not affected. The aids are numbers that the compiled program
takes, so the first rungs compile nothing.  The last one is another program, in float64: it leads
the orbitals down to a minimum of the energy by second-order steps.  A conformer whose AOs are too
nearly dependent for the precision goes straight to it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from qm1b.engine.factory import Engine, EngineAt, at_precisions
from qm1b.errors import OF_CALCULATION
from qm1b.rows.schema import CONVERGED, ILL_CONDITIONED, NOT_CONVERGED, Result
from qm1b.settings import RunSettings

if TYPE_CHECKING:
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.results.result import MoleculeResult
    from pyscf_ipu.scf.convergence import Convergence


PLAIN = "plain"
SMALL_GAP_HARTREE = 0.15
NEVER = 10_000  # a cycle that no calculation reaches


@dataclass(frozen=True)
class Rung:
    """One way to try again; the fields are those of `pyscf_ipu.Convergence`, and the precision."""

    name: str
    damping: float = 0.0
    diis_start: int = 0
    level_shift_hartree: float = 0.0
    precision: str | None = None
    """Instead of the run's; None for the same."""
    stability: bool = False
    """Follow instabilities, and what does not converge, down to a minimum of the energy."""
    small_gap: bool = False
    """Only if an earlier attempt ended with a gap below SMALL_GAP_HARTREE: elsewhere a level shift
    only slows down."""

    def convergence(self) -> Convergence:
        """The aids, for the engine."""
        from pyscf_ipu.scf.convergence import Convergence

        return Convergence(self.damping, self.diis_start, self.level_shift_hartree)


LADDER: tuple[Rung, ...] = (
    Rung("damped", damping=0.5, diis_start=8),
    Rung("shifted", damping=0.5, diis_start=NEVER, level_shift_hartree=0.3, small_gap=True),
    Rung("second_order", precision="float64", stability=True),
)

Run = Callable[[Sequence["Molecule"], Rung | None], list[Result]]
"""Molecules of one shape through the engine: plainly (None), or as a rung says."""


def climb(run: Run, molecules: Sequence[Molecule], ladder: Sequence[Rung]) -> list[Result]:
    """Results of all molecules: of the first attempt that converged, else of the plain one.

    `Result.attempts` lists every attempt as name:status:cycles, a rung that raised as name:error:0,
    which `Result.troubles` names.  An error in the plain attempt is raised.
    """
    kept = run(molecules, None)
    attempts = [[_said(PLAIN, r)] for r in kept]
    troubles: list[tuple[str, ...]] = [()] * len(kept)
    gaps = [_gap(r) for r in kept]
    ill = [r.status == ILL_CONDITIONED for r in kept]
    for rung in ladder:
        open_ = [i for i, r in enumerate(kept) if r.status != CONVERGED]
        chosen = [
            i
            for i in open_
            if (rung.precision or not ill[i])
            and (not rung.small_gap or gaps[i] < SMALL_GAP_HARTREE)
        ]
        if not chosen:
            continue
        found = _tried(run, [molecules[i] for i in chosen], rung)
        for i, result in zip(chosen, found, strict=True):
            if isinstance(result, Exception):
                attempts[i].append(f"{rung.name}:error:0")
                troubles[i] += (f"the retry {rung.name} raised {type(result).__name__}",)
                continue
            attempts[i].append(_said(rung.name, result))
            gaps[i] = min(gaps[i], _gap(result))
            if result.status == CONVERGED:
                kept[i] = result
    said = zip(kept, attempts, troubles, strict=True)
    return [replace(r, attempts=" ".join(a), troubles=t) for r, a, t in said]


def _tried(run: Run, molecules: Sequence[Molecule], rung: Rung) -> list[Result | Exception]:
    """The results of a rung; what it raises with a molecule instead of that one's."""
    try:
        return [*run(molecules, rung)]
    except OF_CALCULATION as error:
        traceback.print_exc()  # into workers.log
        if len(molecules) == 1:
            return [error]
        return [result for one in molecules for result in _tried(run, [one], rung)]


def ladder_for(retry: bool) -> tuple[Rung, ...]:
    """The rungs of a run: none if it does not retry."""
    return LADDER if retry else ()


def memory_of(engine: Engine, factory: str, settings: RunSettings) -> Callable[[Hashable], int]:
    """What a batch of a shape needs at most, whichever rung of the ladder it climbs to."""
    engine_at = at_precisions(factory, settings.level)
    rungs = ladder_for(settings.retry)
    others = {(rung.precision, rung.stability) for rung in rungs} - {(None, False)}
    engines = [engine, *(engine_at(precision, stability=lowest) for precision, lowest in others)]
    return lambda shape: max(each.memory_bytes(shape) for each in engines)


def run_of(
    shape: Hashable,
    engine_at: EngineAt,
    stability: bool = False,
    forces: bool = False,
    coarse: bool = False,
) -> Run:
    """A function that computes molecules of a shape.

    Args:
        shape: theirs.
        engine_at: as of `factory.at_precisions`.
        stability: whether to follow instabilities, whichever rung it is.
        forces: whether to compute forces too.
        coarse: whether the shape is one of few (`Engine.shape`).
    """

    def run(molecules: Sequence[Molecule], rung: Rung | None) -> list[Result]:
        lowest = stability or (rung is not None and rung.stability)
        engine = engine_at(rung.precision if rung else None, stability=lowest)
        if rung and rung.precision:
            engine.shape(molecules[0], coarse=coarse)  # raises if too large for the memory now
        aids: dict[str, Any] = {"convergence": rung.convergence()} if rung else {}
        aids["stability"] = lowest
        aids["forces"] = forces
        found = engine.run(shape, list(molecules), **aids)
        return [
            _result(one, engine.n_ao(m.numbers)) for one, m in zip(found, molecules, strict=True)
        ]

    return run


def _result(found: MoleculeResult, n_ao: int) -> Result:
    """A result of the engine, as plain numbers."""
    x, y, z = (float(value) for value in found.dipole)
    history = {} if found.history is None else found.history
    cycles = {name: tuple(map(float, values)) for name, values in history.items()}
    return Result(
        status=str(found.status),
        n_ao=int(n_ao),
        energy=float(found.energy),
        homo=float(found.homo),
        lumo=float(found.lumo),
        energy_std=float(found.energy_std),
        dipole=(x, y, z),
        converged=bool(found.converged),
        cycles=int(found.cycles),
        commutator_norm=float(found.commutator_norm),
        mo_energy=tuple(float(e) for e in found.mo_energy),
        mulliken_charges=tuple(float(q) for q in found.mulliken_charges),
        jk=found.jk or "",
        dispersion=float("nan") if found.dispersion is None else float(found.dispersion),
        forces=() if found.forces is None else tuple(map(tuple, found.forces.tolist())),
        stable=int(found.stable) if found.stable is not None and found.converged else -1,
        followed=int(found.followed or 0),
        cycle_energy=cycles.get("energy", ()),
        cycle_commutator_norm=cycles.get("commutator_norm", ()),
        cycle_gap=cycles.get("gap", ()),
    )


def _said(name: str, result: Result) -> str:
    return f"{name}:{result.status.split(':')[0]}:{result.cycles}"


def _gap(result: Result) -> float:
    """Hartree; 0 if the SCF ended far from any solution, infinite if there is none at all."""
    far = result.status == NOT_CONVERGED and result.homo != result.homo
    return 0.0 if far else result.gap if result.gap == result.gap else float("inf")
