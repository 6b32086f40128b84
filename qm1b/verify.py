"""The audit of a dataset: invariants of all rows, and a sample recomputed with PySCF in float64."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from . import comparison, store
from .comparison import HIGHER, LOWER, NOT_COMPARED, Bounds, Compared
from .errors import UserError
from .invariants import Invariants, Violation
from .picking import Picked, Picks
from .presets import Level
from .reading import Folder
from .reference import check_functional, level_of, references

VERIFY_JSON = "verify.json"
VERIFY_PNG = "verify.png"

Progress = Callable[[int, int], None]
"""Called with the rows done and the rows in all."""


@dataclass(frozen=True)
class Audit:
    """What was found."""

    folder: Path
    fingerprint: str
    level: Level
    functional_definition: str
    rows: int
    seed: int
    invariants: dict[str, Violation]
    coinciding: int
    """Conformers with the geometry of another one of their line."""
    suspected: int
    """Energy outliers among the conformers of a molecule, recomputed or not."""
    sample: list[Compared]
    suspects: list[Compared]
    bounds: Bounds

    @property
    def missed(self) -> list[str]:
        """Everything that is not as it should be, in words; empty if the dataset passes."""
        broken = [
            f"{name}: {v.count} ({'; '.join(v.examples)})"
            for name, v in self.invariants.items()
            if v.count
        ]
        return broken + comparison.missed(self.sample, self.suspects, self.bounds)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        everything = [*self.suspects, *self.sample]
        return {
            "passed": not self.missed,
            "missed": self.missed,
            "fingerprint": self.fingerprint,
            "level": asdict(self.level),
            "functional_definition": self.functional_definition,
            "reference": f"PySCF {metadata.version('pyscf')}, float64",
            "python": platform.python_version(),
            "rows": self.rows,
            "seed": self.seed,
            "bounds": asdict(self.bounds),
            "invariants": {name: asdict(v) for name, v in self.invariants.items()},
            "coinciding": self.coinciding,
            "suspected": self.suspected,
            "errors": comparison.summarise(self.sample),
            "states": comparison.states(self.sample),
            "states_of_suspects": comparison.states(self.suspects),
            "worst": {
                name: [asdict(row) for row in comparison.worst(everything, name, 5)]
                for name in comparison.QUANTITIES
            },
            "sample": [asdict(row) for row in self.sample],
            "suspects": [asdict(row) for row in self.suspects],
        }


def verify(
    folder: Path,
    size: int,
    seed: int = 0,
    workers: int = 0,
    bounds: dict[str, float | None] | None = None,
    thorough: bool = False,
    progress: Progress = lambda done, total: None,
) -> Audit:
    """Check every row's invariants and recompute some rows at the manifest's level of theory.

    Args:
        folder: the `--out` of a run.
        size: converged rows drawn at random; up to as many outliers come on top, and first.
        seed: another seed draws other rows; the same one the same, whatever the shards.
        workers: PySCF processes; 0 for one a core.
        bounds: fields of `Bounds` in place of the level's own; None leaves one as it is.
        thorough: look for a lower state than PySCF's first one for every row, not only for those
            whose energy differs.
        progress: told how far the recomputation is.

    Raises:
        UserError: no run or no converged row there, a damaged shard, or this PySCF's functional is
            not the manifest's.
    """
    source = Folder(folder)
    settings = source.metadata["settings"]
    level, definition = level_of(settings), source.metadata["functional_definition"]
    check_functional(level.xc, definition)
    checks, picks = Invariants(source.metadata["fingerprint"]), Picks(size, seed)
    for path, batch in zip(source.shards, source.batches(), strict=True):
        if checks.add(path, batch):
            picks.add(batch)
    checks.compare(source.metadata)
    if not checks.rows:
        raise UserError(f"folder {folder} holds no rows: there is nothing to verify.")
    wanted = [*picks.suspects, *picks.sample]
    violations = checks.finish()
    compared = _recompute(wanted, level, workers, thorough, progress)
    return Audit(
        folder=folder,
        fingerprint=source.metadata["fingerprint"],
        level=level,
        functional_definition=definition,
        rows=checks.rows,
        seed=seed,
        invariants=violations,
        coinciding=checks.coinciding,
        suspected=picks.suspected,
        sample=compared[len(picks.suspects) :],
        suspects=compared[: len(picks.suspects)],
        bounds=comparison.override(comparison.default_bounds(level), bounds or {}),
    )


def write(audit: Audit, out: Path) -> list[Path]:
    """`verify.json` with every recomputed row, and `verify.png` with histograms of the errors."""
    from . import plots

    text = json.dumps(audit.to_dict(), indent=1, ensure_ascii=False) + "\n"
    path = out / VERIFY_JSON
    store.write_text(path, text)
    found = [path]
    same = [row for row in audit.sample if row.state == comparison.SAME]
    if same:
        found.append(plots.errors(same, out / VERIFY_PNG))
    return found


def _recompute(
    wanted: Sequence[Picked], level: Level, workers: int, thorough: bool, progress: Progress
) -> list[Compared]:
    """References for all, then again and thoroughly for those in another state."""
    found: dict[int, Compared] = {}

    def run(numbers: list[int], thorough: bool) -> None:
        conformers = [wanted[i].conformer for i in numbers]
        for done, (place, result) in enumerate(
            references(conformers, level, workers, thorough), start=1
        ):
            i = numbers[place]
            found[i] = comparison.compare(wanted[i], result)
            progress(done, len(numbers))

    run(list(range(len(wanted))), thorough)
    if not thorough:
        again = (LOWER, HIGHER, NOT_COMPARED)
        run([i for i, c in sorted(found.items()) if c.state in again], thorough=True)
    return [found[i] for i in range(len(wanted))]


def as_text(audit: Audit, count: int = 3) -> str:
    """The audit as a table, with the worst rows."""
    level = audit.level
    lines = [
        f"{audit.folder}: {audit.rows} rows, {level.xc}/{level.basis}, grid level "
        f"{level.grid_level}, {level.precision}; reference PySCF {metadata.version('pyscf')}",
        "invariants of all rows:",
        *(
            f"  {name:<32} {f'{v.count} broken: ' + '; '.join(v.examples) if v.count else 'ok'}"
            for name, v in audit.invariants.items()
        ),
        f"conformers that coincide with another of their line (no fault): {audit.coinciding}",
        f"energy outliers among conformers: {audit.suspected}, {len(audit.suspects)} recomputed, "
        f"states {_counts(audit.suspects)}",
        f"random sample: {len(audit.sample)} rows, states {_counts(audit.sample)}",
        f"  {'|dataset - PySCF|':<16}{'mean':>10}{'bias':>10}{'50 %':>10}{'95 %':>10}"
        f"{'99 %':>10}{'max':>10}",
    ]
    for name, s in comparison.summarise(audit.sample).items():
        values = (s["mae"], s["bias"], s["p50"], s["p95"], s["p99"], s["max"])
        lines.append(f"  {name:<18}" + "".join(f"{value:10.3g}" for value in values))
    everything = [*audit.suspects, *audit.sample]
    for name in comparison.QUANTITIES if count else ():
        lines.append(f"worst rows, {name}:")
        for row in comparison.worst(everything, name, count):
            value = getattr(row, name)
            lines.append(f"  {value:10.3g}  {_place(row)}, {row.state} state")
    failed = [row for row in everything if row.problem][:count]
    lines += [f"PySCF failed: {_place(row)}: {row.problem}" for row in failed]
    verdict = "passed" if not audit.missed else "FAILED"
    return "\n".join([*lines, verdict, *(f"  {text}" for text in audit.missed)])


def _place(row: Compared) -> str:
    return f"line {row.line}, conformer {row.conformer}, {row.smiles}"


def _counts(rows: Sequence[Compared]) -> str:
    return ", ".join(f"{n} {s}" for s, n in comparison.states(rows).items() if n) or "none"
