"""The output folder of a run: locked, compared with the run, checked shard by shard, and filled.

However an earlier run ended, it left whole shards: those that pass their checksum are kept, the
others are computed again, and everything else (the counts, dropped.csv) is made from the shards.
Dropped lines that are to be tried again stay in their shard until a better one takes its place.
"""

import itertools
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyscf_ipu.settings.presets import EXACT
from qm1b.errors import UserError
from qm1b.folder import checksum, shards
from qm1b.folder.completeness import must_belong, other_software, stranger
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.manifest import Difference, Manifest
from qm1b.folder.manifest.manifest_schema import KILLED, RUNNING
from qm1b.folder.manifest.tally import Tally
from qm1b.folder.manifest.work_units import WorkPlan
from qm1b.inputs.detect import SMILES
from qm1b.reference import atomisation
from qm1b.rows import identity as rows_identity
from qm1b.rows.schema import Conformer, Json
from qm1b.rows.unit import Unit
from qm1b.storage import files
from qm1b.storage.lock import locked


@dataclass
class LockedFolder:
    """A locked folder and its content. Make one with `opened`."""

    path: Path
    identity: Manifest
    """The run that fills it."""
    plan: WorkPlan
    """The units that should end here."""
    tally: Tally = field(default_factory=Tally)
    done: set[int] = field(default_factory=set)
    """Units whose shard is there and good."""
    mixed: dict[Difference, None] = field(default_factory=dict)
    """Where the software that computed shards differs from the run's, each difference once."""
    damaged: list[str] = field(default_factory=list)
    """Names of shards that were found damaged, and removed."""
    mended: str = ""
    """What was wrong with the manifest, if a new one takes its place."""
    earlier: list[Json] = field(default_factory=list)
    """The manifest's records of the runs before this one."""
    again: dict[int, frozenset[int]] = field(default_factory=dict)
    """Units whose shard is there and good, and their dropped lines that are to be tried again."""
    taken_out: Tally = field(default_factory=Tally)
    """What those lines count for in the tally."""

    def know(self, free_atoms: Mapping[str, float]) -> None:
        """Take energies of free atoms, in Hartree by symbol, into the manifest."""
        self.identity = replace(self.identity, free_atom_energies_hartree=free_atoms)

    @property
    def missing(self) -> list[int]:
        """Units that are still to be computed."""
        return [unit for unit in self.plan.units if unit not in self.done]

    @property
    def to_do(self) -> list[int]:
        """Units that are missing, or have lines to be tried again."""
        return sorted([*self.missing, *self.again])

    def wanted(self) -> Callable[[int], bool]:
        """A function that says which input lines are still to be computed, as of now."""
        missing, again = set(self.missing), dict(self.again)

        def is_wanted(line: int) -> bool:
            unit = self.plan.unit_of(line)
            return unit in missing or line in again.get(unit, ())

        return is_wanted

    def add(self, unit: Unit, versions: Mapping[str, str] | None = None) -> None:
        """Write a finished unit: its shard first, which is what counts, then dropped.csv.

        Args:
            unit: the unit; only the lines in question if some were tried again.
            versions: those of the machine that computed it, if it was another.

        Raises:
            UserError: the disk is full or not writable.
        """
        before = Tally()
        computed_with = dict(self.identity.versions if versions is None else versions)
        if unit.index in self.again:
            path = shards.shard_path(self.path, unit.index)
            earlier = shards.read_unit(path)
            before, unit = self._tally_of(earlier), earlier.renewed(unit)
            computed_with = manifest.both(shards.read_attributes(path), computed_with)
        unit.rows = atomisation.with_atomisation(
            unit.rows, self.identity.free_atom_energies_hartree
        )
        attributes = manifest.shard_attributes(
            replace(self.identity, versions=computed_with).to_dict(), unit.index
        )
        shards.write_shard(
            self.path, unit.index, unit.rows, drops=unit.drops, attributes=attributes
        )
        self.done.add(unit.index)
        self.tally.replace(before, self._tally_of(unit))
        if self.again.pop(unit.index, None) is None:  # else its drops are there: see write_dropped
            shards.append_dropped(self.path, unit.drops)

    def adopt(self, unit: int, path: Path, other_versions: bool = False) -> None:
        """Copy a shard of the same run from elsewhere.

        Raises:
            Damaged: it is not what was written.
            UserError: it is not of this run, or the disk is full or not writable.
        """
        _count(self, path, unit, other_versions=other_versions)
        data = path.read_bytes()
        files.atomic_write(shards.shard_path(self.path, unit), lambda stream: stream.write(data))

    def write_dropped(self) -> None:
        """Write dropped.csv in the order of the input, from the shards.

        Raises:
            UserError: a shard is gone or damaged, or the disk is full or not writable.
        """
        paths = [shards.shard_path(self.path, unit) for unit in sorted(self.done)]
        gone = [path for path in paths if not path.exists()]
        if gone and self.path.is_dir():
            raise UserError(
                f"{len(gone)} of the shards that were written to {self.path} are gone, such as "
                f"{gone[0].name}: somebody deleted or moved them; put them back, or give the same "
                "command again, which computes them again"
            )
        drops = itertools.chain.from_iterable(map(shards.read_drops, paths))
        shards.write_drops(self.path / shards.DROPPED, drops)

    def _tally_of(self, unit: Unit) -> Tally:
        """The counts of a whole unit."""
        tally = Tally()
        tally.add_unit(unit, self.plan.lines_of(unit.index))
        tally.add_molecules(_molecule(row.conformer) for row in unit.rows)
        return tally

    def write_manifest(self, status: str, this_run: Json) -> None:
        """Write the manifest: what the run is, what is here, and how each run went."""
        runs = [*self.earlier, {**this_run, "status": status}]
        whole = replace(self.identity, status=status, counts=self.tally, runs=runs)
        shards.write_manifest(self.path, whole)


@contextmanager
def opened(
    path: Path, identity: Manifest, other_versions: bool = False, retry: Collection[str] = ()
) -> Iterator[LockedFolder]:
    """A folder that this run may fill, locked inside the block; made if it does not exist.

    Args:
        path: the folder.
        identity: the run.
        other_versions: resume with shards that other software computed.
        retry: lines that were dropped for these reasons are to be tried again.

    Yields:
        The folder, with its good shards counted and its damaged ones removed.

    Raises:
        UserError: it cannot be written, another run is using it, or it holds another run.
    """
    files.make_folder(path)
    with locked(path):
        shards.clean(path)
        before, wrong = _earlier_manifest(path)
        settings = (
            shards.settings_of_shards(shards.shards(path))[0] if before is None else before.settings
        )
        identity = identity.in_words_of(settings) if settings is not None else identity
        is_smiles = identity.settings["input_format"] in SMILES
        folder = LockedFolder(
            path, identity, identity.plan, tally=Tally(lines_are_molecules=is_smiles)
        )
        folder.mended = wrong
        if before is not None:
            _must_agree(path, before, identity)
            folder.earlier = [_ended(run) for run in before.runs]
            folder.know(before.free_atom_energies_hartree)
        _survey(folder, other_versions)
        if retry:
            _take_out(folder, retry)
        yield folder


def started_now() -> str:
    """The time, for the manifest: ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _earlier_manifest(path: Path) -> tuple[Manifest | None, str]:
    """The manifest of a folder with shards, or what is wrong with it.

    Without a shard there is nothing to lose, so a run that failed or was stopped at once does not
    count. Without a good manifest, the shards are compared with the run, and a new one is written.
    """
    paths = shards.shards(path)
    if not paths:
        return None, ""
    try:
        before = shards.read_manifest(path)
    except UserError as error:
        return None, str(error) if (path / shards.MANIFEST).exists() else ""
    for shard in paths:
        if shards.unit_of(shard) not in before.plan.units:
            return None, f"{shard.name} is none of the units in the manifest"
        try:
            attributes = shards.read_attributes(shard)
        except checksum.Damaged:
            continue  # it will be computed again
        if wrong := manifest.contradiction(before, shards.unit_of(shard), attributes, lines=()):
            return None, f"the manifest contradicts {shard.name}: in the manifest {wrong}"
    return before, ""


def _must_agree(path: Path, before: Manifest, here: Manifest) -> None:
    differing = manifest.differences(before, here)
    if differing:
        form = before.settings.get("jk", EXACT)
        fit = f" (that run has --jk {form})" * any(name == "jk" for name, _, _ in differing)
        raise UserError(
            f"folder {path} holds another run; give another --out, or the same input and "
            f"settings as there{fit}:\n"
            f"{manifest.table(differing)}"
        )


def _ended(run: Json) -> Json:
    """The record of an earlier run, which did not write its end if it was killed."""
    return run | {"status": KILLED} if run.get("status") == RUNNING else run


def _survey(folder: LockedFolder, other_versions: bool) -> None:
    """Check and count every shard; remove those that are damaged."""
    for path in shards.shards(folder.path):
        unit = shards.unit_of(path)
        if unit not in folder.plan.units:
            raise stranger(path)
        try:
            _count(folder, path, unit, other_versions=other_versions)
        except checksum.Damaged:
            folder.damaged.append(path.name)
            path.unlink()


def _take_out(folder: LockedFolder, reasons: Collection[str]) -> None:
    """Find the lines that were dropped for some reasons."""
    for index in sorted(folder.done):
        path = shards.shard_path(folder.path, index)
        lines = frozenset(d.line for d in shards.read_drops(path) if d.reason in reasons)
        if lines:
            folder.again[index] = lines
            folder.taken_out.add_unit(shards.read_unit(path).only(lines), len(lines))


def _count(folder: LockedFolder, path: Path, unit: int, other_versions: bool) -> None:
    """Check a shard of `unit` and count what is in it."""
    attributes, rows, drops = shards.read_whole(path)
    must_belong(folder.identity, path, unit, attributes=attributes, lines=rows["line"].tolist())
    computed_with = json.loads(attributes.get("versions", "{}"))
    differing = manifest.other_versions(computed_with, folder.identity.versions)
    if differing and not other_versions:
        raise other_software(path, differing)
    folder.mixed |= dict.fromkeys(differing)
    known = folder.identity.free_atom_energies_hartree
    if known and atomisation.contradicts(rows, known):
        folder.mended = f"the manifest contradicts {path.name}: {atomisation.CONTRADICTION}"
        folder.know({})
    folder.done.add(unit)
    folder.tally.add(
        folder.plan.lines_of(unit),
        rows["line"].tolist(),
        rows["status"].tolist(),
        reasons=(drop.reason for drop in drops),
    )
    folder.tally.add_molecules(rows_identity.numbers(rows).tolist())


def _molecule(conformer: Conformer) -> tuple[str, int]:
    return rows_identity.name_of(conformer.smiles, conformer.seed), conformer.charge
