"""The audit of a dataset: invariants of all rows, and a sample recomputed with PySCF in float64."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

from pyscf_ipu.base.terminal import counted, text_table
from pyscf_ipu.settings import Settings
from qm1b.audit import comparison, turning
from qm1b.audit.bounds import Bounds, default_bounds
from qm1b.audit.comparison import SAME, Compared
from qm1b.audit.invariants import Invariants, Violation
from qm1b.audit.picking import Picked, Picks
from qm1b.audit.turning import Turned
from qm1b.errors import UserError
from qm1b.folder.manifest.versions import versions
from qm1b.folder.shard_folder import ShardFolder
from qm1b.folder.shards import VERIFY_JSON, VERIFY_PNG
from qm1b.reference.free_atoms import disagreements
from qm1b.reference.functional_ids import check_functional
from qm1b.reference.recompute import Reference, recompute_many
from qm1b.rows.schema import Conformer
from qm1b.storage import files


@dataclass(frozen=True)
class Effort:
    """How the chosen rows are recomputed."""

    workers: int = 0
    """PySCF processes; 0 for one per core."""
    thorough: bool = False
    """Look for a state below PySCF's first one for every row, not only where the energy differs."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with the number of finished rows and of all rows, first with none finished."""
    forces: bool = False
    """Also compute forces; `verify` sets it if the run has them."""
    turned: int = 0
    """Rows of the sample to compute in two more orientations, for the noise of the grid."""


@dataclass(frozen=True)
class Audit:
    """The result of `verify`."""

    folder: Path
    fingerprint: str
    level: Settings
    functional_definition: str
    rows: int
    sources: dict[str, int]
    """Rows by the hash of the code that computed them (`qm1b.folder.manifest.sources`)."""
    seed: int
    invariants: dict[str, Violation]
    coinciding: int
    """Conformers with the same geometry as another conformer of their line, which is allowed."""
    suspected: int
    """Energy outliers among the conformers of a molecule, recomputed or not."""
    bounds: Bounds
    sample: list[Compared]
    suspects: list[Compared]
    turned: list[Turned]
    """Rows of the sample in three orientations."""

    @property
    def missed(self) -> list[str]:
        """Broken invariants and exceeded bounds, in words; empty if the dataset passes."""
        broken = [
            f"{name}: {v.count} ({'; '.join(v.examples)})"
            for name, v in self.invariants.items()
            if v.count
        ]
        return broken + comparison.missed(self.sample, self.suspects, self.bounds)

    @property
    def recomputed(self) -> list[Compared]:
        """Suspects, then the sample; each row once."""
        rows = {(row.line, row.conformer): row for row in [*self.suspects, *self.sample]}
        return [*rows.values()]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        everything = self.recomputed
        plain = asdict(self)
        del plain["folder"]
        return {
            "passed": not self.missed,
            "missed": self.missed,
            "reference": f"PySCF {metadata.version('pyscf')}, float64",
            "python": platform.python_version(),
            "errors": comparison.summarise(self.sample),
            "turning": comparison.turning(self.turned),
            "states": comparison.states(self.sample),
            "states_of_suspects": comparison.states(self.suspects),
            "worst": {
                name: [asdict(row) for row in comparison.worst(everything, name, 5)]
                for name in comparison.QUANTITIES
            },
            **plain,
        }


def verify(
    folder: Path,
    size: int,
    seed: int = 0,
    bounds: Mapping[str, float | None] | None = None,
    effort: Effort = Effort(),
) -> Audit:
    """Check every row's invariants and recompute some rows at the manifest's level of theory.

    Args:
        folder: the `--out` of a run.
        size: converged rows drawn at random. At most this many outliers are recomputed too, first.
        seed: decides which rows are drawn, whatever the shards.
        bounds: fields of `Bounds` that replace the level's own, unless they are None.
        effort: how the rows are recomputed.

    Raises:
        UserError: the folder holds no run or no row, a shard is damaged or contradicts the
            manifest, or this PySCF's functional is not the manifest's.
    """
    source = ShardFolder(folder)
    source.check()
    level, definition = source.manifest.level, source.manifest.functional_definition
    check_functional(level.xc, definition)
    checks = Invariants(source.manifest.fingerprint, source.free_atom_energies, level.basis)
    picks = Picks(size, seed)
    for path, batch in zip(source.shards, source.batches(), strict=True):
        if checks.add(path, batch):
            picks.add(batch)
    checks.compare(source.manifest)
    if not checks.rows:
        raise UserError(f"folder {folder} holds no rows: there is nothing to verify")
    violations = checks.finish()
    atoms = disagreements(source.free_atom_energies, level)
    violations["free_atoms"].add(len(atoms), atoms)
    effort = replace(effort, forces=bool(source.manifest.settings.get("forces")))
    wanted = {row.place: row for row in [*picks.suspects, *picks.sample]}  # some are both
    answers = dict(zip(wanted, _recompute([*wanted.values()], level, effort), strict=True))
    compared = {place: row for place, (row, _) in answers.items()}
    turned = [(row, answers[row.place][1]) for row in picks.sample[: effort.turned]]
    given = {name: value for name, value in (bounds or {}).items() if value is not None}
    return Audit(
        folder=folder,
        fingerprint=source.manifest.fingerprint,
        level=level,
        functional_definition=definition,
        rows=checks.rows,
        sources=dict(checks.sources),
        seed=seed,
        invariants=violations,
        coinciding=checks.coinciding,
        suspected=picks.suspected,
        sample=[compared[row.place] for row in picks.sample],
        suspects=[compared[row.place] for row in picks.suspects],
        turned=_turn(turned, level, effort),
        bounds=replace(default_bounds(level), **given),
    )


def write(audit: Audit, out: Path) -> list[Path]:
    """Write `verify.json` with every recomputed row, and `verify.png` with histograms of errors."""
    from qm1b.report import plots

    paths = [out / VERIFY_JSON]
    files.write_json(paths[0], audit.to_dict(), indent=1)
    same = [row for row in audit.sample if row.state == SAME]
    if same:
        paths.append(plots.errors(same, out / VERIFY_PNG))
    return paths


def _recompute(
    wanted: Sequence[Picked], level: Settings, effort: Effort
) -> list[tuple[Compared, Reference]]:
    """All rows compared with their references; those in another state a second time, thoroughly."""
    jobs = [(picked.conformer, picked.form) for picked in wanted]
    references = _references(jobs, level, effort)
    rows = [(comparison.compare(p, one), one) for p, one in zip(wanted, references, strict=True)]
    again = [i for i, (row, _) in enumerate(rows) if row.state != SAME]
    if again and not effort.thorough:
        thorough = replace(effort, thorough=True)
        better = _recompute([wanted[i] for i in again], level, thorough)
        for i, row in zip(again, better, strict=True):
            rows[i] = row
    return rows


def _turn(
    rows: Sequence[tuple[Picked, Reference]], level: Settings, effort: Effort
) -> list[Turned]:
    """Some rows and their references in the other orientations."""
    jobs = [(one, p.form) for p, _ in rows for one in turning.orientations(p.conformer)]
    others, count = _references(jobs, level, effort), len(turning.ROTATIONS)
    spreads = (
        turning.spread(picked.conformer, [one, *others[i * count : (i + 1) * count]])
        for i, (picked, one) in enumerate(rows)
    )
    return [each for each in spreads if each is not None]


def _references(
    jobs: Sequence[tuple[Conformer, str]], level: Settings, effort: Effort
) -> list[Reference]:
    """PySCF's numbers of conformers, each with the form of its electron repulsion."""
    conformers = [conformer for conformer, _ in jobs]
    levels: Settings | list[Settings] = level
    if level.jk == "auto":
        levels = [level.with_form(form) for _, form in jobs]
    results = recompute_many(
        conformers, levels, effort.workers, thorough=effort.thorough, forces=effort.forces
    )
    references: dict[int, Reference] = {}
    effort.progress(0, len(jobs))
    for done, (i, result) in enumerate(results, start=1):
        references[i] = result
        effort.progress(done, len(jobs))
    return [references[i] for i in range(len(jobs))]


def as_text(audit: Audit, count: int = 3) -> str:
    """The audit as a table, with the `count` worst rows of each quantity."""
    broken = [
        (name, f"{v.count} broken: {'; '.join(v.examples)}" if v.count else "ok")
        for name, v in audit.invariants.items()
    ]
    errors = [["|dataset - PySCF|", "mean", "bias", "50 %", "95 %", "99 %", "max"]]
    for name, s in comparison.summarise(audit.sample).items():
        values = (s["mae"], s["bias"], s["p50"], s["p95"], s["p99"], s["max"])
        errors.append([name, *(f"{value:.3g}" for value in values)])
    lines = [
        f"{audit.folder}: {counted(audit.rows, 'row')}, {audit.level.in_words}; "
        f"reference PySCF {metadata.version('pyscf')}",
        f"code that computed them (sources): {_by_sources(audit)}",
        "invariants of all rows:",
        *text_table(broken, "<32 <", indent="  "),
        f"conformers that coincide with another of their line (allowed): {audit.coinciding}",
        f"suspect rows: {audit.suspected}, {len(audit.suspects)} recomputed, "
        f"states {_counts(audit.suspects)}",
        f"random sample: {counted(len(audit.sample), 'row')}, states {_counts(audit.sample)}",
        *text_table(errors, "<18 >10 >10 >10 >10 >10 >10", gap="", indent="  "),
    ]
    for name, s in comparison.turning(audit.turned).items():
        what = f"mean {s['mae']:.3g}, median {s['p50']:.3g}, largest {s['max']:.3g}"
        rows = counted(len(audit.turned), "row")
        lines.append(f"spread over three orientations, {rows}, {name}: {what}")
    everything = audit.recomputed
    for name in comparison.QUANTITIES if count else ():
        bad = comparison.worst(everything, name, count)
        lines += [f"worst rows, {name}:"] if bad else []
        table = [(f"{getattr(r, name):.3g}", f"{_place(r)}, {r.state} state") for r in bad]
        lines += text_table(table, ">10 <", gap="  ", indent="  ")
    failed = [row for row in everything if row.problem][:count]
    lines += [f"PySCF failed: {_place(row)}: {row.problem}" for row in failed]
    verdict = "passed" if not audit.missed else "FAILED"
    return "\n".join([*lines, verdict, *(f"  {text}" for text in audit.missed)])


def _by_sources(audit: Audit) -> str:
    """The hashes with their rows; which one this program has, and a warning if they are mixed."""
    here = versions()["sources"]
    named = [
        f"{name}{' (this program)' if name == here else ''}, {counted(n, 'row')}"
        for name, n in sorted(audit.sources.items())
    ]
    mixed = "; rows of different code are mixed" if len(named) > 1 else ""
    return "; ".join(named) + mixed


def _place(row: Compared) -> str:
    who = " ".join(filter(None, (row.id, row.smiles)))
    return f"line {row.line}, conformer {row.conformer}, {who}"


def _counts(rows: Sequence[Compared]) -> str:
    return ", ".join(f"{n} {s}" for s, n in comparison.states(rows).items() if n) or "none"
