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
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qm1b.engine.factory import Engine, EngineAt, at_precisions
from qm1b.errors import OF_CALCULATION
from qm1b.rows.batch import Record, plain
from qm1b.rows.schema import (
    CONVERGED,
    ILL_CONDITIONED,
    NOT_CONVERGED,
    Conformer,
    Row,
    stored_fields,
)
from qm1b.settings import RunSettings

if TYPE_CHECKING:
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

Run = Callable[[Sequence[Conformer], Rung | None], list[Row]]
"""Conformers of one shape through the engine: plainly (None), or as a rung says."""


def climb(run: Run, conformers: Sequence[Conformer], ladder: Sequence[Rung]) -> list[Row]:
    """Rows of all conformers: of the first attempt that converged, else of the plain one.

    `Row.attempts` lists every attempt as name:status:cycles, a rung that raised as name:error:0,
    which `Row.troubles` names.  An error in the plain attempt is raised.
    """
    rows = [replace(r, attempts=_in_words(PLAIN, r)) for r in run(conformers, None)]
    gaps = [_gap(r) for r in rows]
    ill = [r.status == ILL_CONDITIONED for r in rows]
    for rung in ladder:
        chosen = [
            i
            for i, r in enumerate(rows)
            if r.status != CONVERGED
            and (rung.precision or not ill[i])
            and (not rung.small_gap or gaps[i] < SMALL_GAP_HARTREE)
        ]
        if not chosen:
            continue
        tried = _tried(run, [conformers[i] for i in chosen], rung)
        for i, row in zip(chosen, tried, strict=True):
            attempts, troubles = rows[i].attempts, rows[i].troubles
            if isinstance(row, Exception):
                attempts += f" {rung.name}:error:0"
                troubles += (f"the retry {rung.name} raised {type(row).__name__}",)
            else:
                attempts += f" {_in_words(rung.name, row)}"
                gaps[i] = min(gaps[i], _gap(row))
                rows[i] = row if row.status == CONVERGED else rows[i]
            rows[i] = replace(rows[i], attempts=attempts, troubles=troubles)
    return rows


def _tried(run: Run, conformers: Sequence[Conformer], rung: Rung) -> list[Row | Exception]:
    """The rows of a rung; what it raises with a conformer instead of that one's."""
    try:
        return [*run(conformers, rung)]
    except OF_CALCULATION as error:
        traceback.print_exc()  # into workers.log
        if len(conformers) == 1:
            return [error]
        return [row for one in conformers for row in _tried(run, [one], rung)]


def ladder_for(settings: RunSettings) -> tuple[Rung, ...]:
    """The rungs of a run: none if it does not retry, and on a simulated IPU those in float32."""
    if not settings.retry:
        return ()
    return tuple(r for r in LADDER if not (settings.is_simulated and r.precision))


def memory_of(engine: Engine, factory: str, settings: RunSettings) -> Callable[[Hashable], int]:
    """What a batch of a shape needs at most, whichever rung of the ladder it climbs to."""
    engine_at = at_precisions(factory, settings)
    rungs = ladder_for(settings)
    others = {(rung.precision, rung.stability) for rung in rungs} - {(None, False)}
    at = partial(engine_at, open_shell=True) if settings.open_shells else engine_at
    engines = [engine, *(at(precision, stability=lowest) for precision, lowest in others)]
    if settings.open_shells:
        engines.append(at(None))
    return lambda shape: max(each.memory_bytes(shape, forces=settings.forces) for each in engines)


def run_of(
    shape: Hashable,
    engine_at: EngineAt,
    stability: bool = False,
    forces: bool = False,
    coarse: int = 0,
    properties: Sequence[str] = (),
) -> Run:
    """A function that computes conformers of a shape.

    Args:
        shape: theirs.
        engine_at: as of `factory.at_precisions`.
        stability: whether to follow instabilities, whichever rung it is.
        forces: whether to compute forces too.
        coarse: how coarse the shape is (`Engine.shape`).
        properties: fields of a row that follow from the density.
    """

    def run(conformers: Sequence[Conformer], rung: Rung | None) -> list[Row]:
        molecules = [conformer.molecule() for conformer in conformers]
        lowest = stability or (rung is not None and rung.stability)
        engine = engine_at(rung.precision if rung else None, stability=lowest)
        if rung and rung.precision:
            engine.shape(molecules[0], coarse=coarse)  # raises if too large for the memory now
        aids: dict[str, Any] = {"convergence": rung.convergence()} if rung else {}
        aids |= {"orbitals": True} if properties else {}
        results = engine.run(shape, molecules, forces=forces, stability=lowest, **aids)
        return [
            row_of_result(c, result, engine.n_ao(c.numbers), properties=properties)
            for c, result in zip(conformers, results, strict=True)
        ]

    return run


def row_of_result(
    conformer: Conformer, result: MoleculeResult, n_ao: int, properties: Sequence[str] = ()
) -> Row:
    """The fields of a row that the engine's result has, by name; None is their default."""
    values = vars(result) | {name: getattr(result, name) for name in properties}
    values["mo_energy"] = np.ravel(values["mo_energy"])
    values |= {f"cycle_{name}": each for name, each in (values["history"] or {}).items()}
    if not values["converged"]:
        values["stable"] = None
    given: Record = {
        f.name: plain(np.asarray(values[f.name], f.dtype))
        for f in stored_fields(Row)
        if values.get(f.name) is not None
    }
    return Row(conformer=conformer, n_ao=n_ao, **given)


def _in_words(name: str, row: Row) -> str:
    return f"{name}:{row.status.split(':')[0]}:{row.cycles}"


def _gap(row: Row) -> float:
    """Hartree; 0 if the SCF ended far from any solution, infinite if there is none at all."""
    far = row.status == NOT_CONVERGED and row.homo != row.homo
    return 0.0 if far else row.gap if row.gap == row.gap else float("inf")
