"""A list of molecules of any shapes: in batches, on all cores, results in the order given."""

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from pyscf_ipu.base.errors import InvalidMolecule, TooLarge, UsageError
from pyscf_ipu.molecule.checks import as_molecule
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import MoleculeResult, invalid
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.platform import MEMORY_SHARE
from pyscf_ipu.solver.solver import Solver, Wanted

PATIENCE_SECONDS = 3.0
"""After this long a terminal or a notebook shows how far a list is."""


_Kind = tuple[Shape, bool]
"""The shape of molecules, and whether they are open shells: what one program computes."""


@dataclass(frozen=True)
class _Batch:
    kind: _Kind
    places: list[int]  # in the list of molecules


_Done = tuple[_Batch, list[MoleculeResult]]


def molecule_list(molecules: Molecule | Sequence[Molecule]) -> list[Molecule]:
    """A list of molecules, also from a single one.

    Raises:
        TypeError: not a Molecule and not a sequence of them.
    """
    if isinstance(molecules, Molecule):
        return [molecules]
    if isinstance(molecules, str) or not isinstance(molecules, Sequence):
        what = f"a Molecule or a list of them is needed, not a {type(molecules).__name__}"
        raise TypeError(f"{what}: {as_molecule(molecules)}")
    for i, mol in enumerate(molecules):
        if not isinstance(mol, Molecule):
            what = f"entry {i} is a {type(mol).__name__}, not a Molecule"
            raise TypeError(f"{what}: {as_molecule(mol)}")
    return list(molecules)


def results(
    mols: Sequence[Molecule],
    solver: Solver,
    wanted: Wanted,
    strict: bool = False,
    workers: int | None = None,
) -> list[MoleculeResult]:
    """One result per molecule, in the order given.

    The result of a molecule depends neither on its batch nor on the number of workers; on a GPU
    its last digits may depend on the size of the batch.

    Args:
        mols: of any shapes.
        solver: computes them.
        wanted: what the results hold.
        strict: raise on a molecule that cannot be computed.
        workers: threads that compute at the same time; default `n_cores()` on a CPU, else 2.

    Raises:
        InvalidMolecule: a molecule cannot be computed, and `strict` is set.
        UsageError: workers is not a whole number from 1 on.
    """
    groups, by_place = _by_kind(mols, solver, wanted, strict=strict)
    threads = _threads(workers, groups, solver)
    batches = _batches(groups, solver, threads)

    device = jax.config.jax_default_device  # type: ignore[attr-defined]

    def compute(batch: _Batch) -> _Done:
        members, (shape, is_open) = [mols[i] for i in batch.places], batch.kind
        guesses = tuple(wanted.guess(i) for i in batch.places) if is_open else None
        try:
            with jax.default_device(device):  # a setting of the caller's thread alone
                asked = replace(wanted, guesses=guesses)
                return batch, solver.compute(shape, members, asked)
        except TooLarge as error:  # seen when the program was made
            if strict:
                raise
            return batch, [_refused(error, mol, solver, is_open=is_open) for mol in members]

    if len(batches) == 1:
        done = compute(batches[0])
        by_place.update(zip(done[0].places, done[1], strict=True))
        return [by_place[i] for i in range(len(mols))]
    with ThreadPoolExecutor(threads) as pool:
        try:
            futures = [pool.submit(compute, batch) for batch in batches]
            for batch, rows in _followed(futures, len(mols)):
                by_place.update(zip(batch.places, rows, strict=True))
        except BaseException:  # an interrupt, too: batches under way end, others never begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [by_place[i] for i in range(len(mols))]


def _by_kind(
    mols: Sequence[Molecule], solver: Solver, wanted: Wanted, strict: bool
) -> tuple[dict[_Kind, list[int]], dict[int, MoleculeResult]]:
    """Places of the molecules by kind, and results of those that cannot be computed."""
    refused: dict[int, MoleculeResult] = {}
    groups: dict[_Kind, list[int]] = {}
    for i, mol in enumerate(mols):
        is_open = wanted.guess(i) is not None
        try:
            mol.check(solver.settings.precision, open_shell=is_open)
            groups.setdefault((solver.shape(mol), is_open), []).append(i)
        except InvalidMolecule as error:
            if strict:
                raise type(error)(
                    f"molecule {i}: {error}" if len(mols) > 1 else str(error)
                ) from error
            refused[i] = _refused(error, mol, solver, is_open=is_open)
    return groups, refused


def _refused(
    error: InvalidMolecule, mol: Molecule, solver: Solver, is_open: bool
) -> MoleculeResult:
    """The result of a molecule that cannot be computed."""
    nothing = invalid(str(error), mol.n_atoms, open_shell=is_open)
    return replace(nothing, molecule=mol, settings=solver.settings)


def _threads(workers: int | None, kinds: Iterable[_Kind], solver: Solver) -> int:
    """How many batches are computed at a time: as many as were asked for and memory holds."""
    if workers is not None and (type(workers) is not int or workers < 1):
        raise UsageError(f"workers={workers!r}: give a whole number from 1 on, or None")
    here = solver.platform
    largest = max((solver.memory_bytes(one, open_shell=two) for one, two in kinds), default=1)
    room = int(MEMORY_SHARE * here.room() / largest)
    return max(1, min(here.threads() if workers is None else workers, room))


def _batches(groups: dict[_Kind, list[int]], solver: Solver, threads: int) -> list[_Batch]:
    """Batches of each shape, small enough that every thread gets some, if padding is free.

    Each shape's first batch, which waits for the compiler, comes before all others, large shapes
    first: their programs take longest.
    """
    batches: list[tuple[int, int, _Batch]] = []
    for (shape, is_open), places in groups.items():
        size = solver.batch_size(shape)
        if solver.platform.padding_is_free:
            size = min(size, -(-len(places) // threads))
        for start in range(0, len(places), size):
            batch = _Batch((shape, is_open), places[start : start + size])
            batches.append((start > 0, -shape.n_ao, batch))
    return [batch for *_, batch in sorted(batches, key=lambda entry: entry[:2])]


def _followed(futures: Iterable[Future[_Done]], n_molecules: int) -> Iterator[_Done]:
    """Results as they come; where somebody watches and has waited for a while, with a bar."""
    begun, pending, finished = time.monotonic(), set(futures), 0
    console, bar = Console(stderr=True), None
    with ExitStack() as until_the_end:
        while pending:
            done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            waited = time.monotonic() - begun > PATIENCE_SECONDS
            if bar is None and waited and _is_watched(console):
                columns = (BarColumn(), MofNCompleteColumn(), "molecules", TimeRemainingColumn())
                bar = until_the_end.enter_context(
                    Progress(*columns, console=console, transient=True)
                )
                bar.add_task("", total=n_molecules)
            for future in done:
                finished += len(future.result()[1])
                yield future.result()
            if bar is not None:
                bar.update(bar.task_ids[0], completed=finished)


def _is_watched(console: Console) -> bool:
    """Whether a bar would be seen moving: in a notebook rich needs ipywidgets for it."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal
