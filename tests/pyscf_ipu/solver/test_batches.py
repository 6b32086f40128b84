"""Lists of molecules: the same results from any number of workers, in the order given."""

import numpy as np
import pytest
from oracle import SMALL, small

from pyscf_ipu.solver import batches, platform
from pyscf_ipu.solver.batches import Wanted, results

NAMES = tuple(SMALL)


@pytest.fixture(scope="module")
def solver(solver_of):
    return solver_of(precision="float64")


@pytest.mark.parametrize("workers", [2, 5, None])
def test_workers_change_no_bit_and_no_order(solver, workers):
    mols = [small(name) for name in NAMES] * 3
    alone = results(mols, solver, Wanted(), workers=1)
    together = results(mols, solver, Wanted(), workers=workers)
    assert [row.energy.hex() for row in together] == [row.energy.hex() for row in alone]


def test_every_thread_gets_a_part(solver):
    mols = [small(name) for name in NAMES]
    groups = {}
    for i, mol in enumerate(mols):
        groups.setdefault((solver.shape(mol), False), []).append(i)
    for threads in (1, 2, 3, 100):
        found = batches._batches(groups, solver, threads)
        assert sorted(i for batch in found for i in batch.places) == [*range(len(mols))]
        largest = max(len(places) for places in groups.values())
        assert max(len(batch.places) for batch in found) <= -(-largest // threads)


def test_no_more_threads_than_memory_holds(solver, monkeypatch):
    shape = solver.shape(small(NAMES[0]))
    room = 2.5 * solver.memory_bytes(shape) / batches.MEMORY_SHARE
    monkeypatch.setattr(platform, "available_bytes", lambda: room)
    assert batches._threads(7, [(shape, False)], solver) == 2
    monkeypatch.setattr(platform, "available_bytes", lambda: 1)
    assert batches._threads(7, [(shape, False)], solver) == 1


@pytest.mark.parametrize("workers", [0, -1])
def test_a_number_of_workers_that_is_none(solver, workers):
    with pytest.raises(ValueError, match="whole number from 1 on"):
        results([], solver, Wanted(), workers=workers)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("lost the device")])
def test_an_interrupt_ends_it_soon(solver, monkeypatch, error):
    """What has not begun never begins."""
    begun, run = [], solver.compute

    def breaking(*args, **kwargs):
        begun.append(args)
        if len(begun) == 2:
            raise error
        return run(*args, **kwargs)

    monkeypatch.setattr(solver, "compute", breaking)
    mols = [small(NAMES[0])] * 8 * solver.batch_size(solver.shape(small(NAMES[0])))
    with pytest.raises(type(error)):
        results(mols, solver, Wanted(), workers=1)
    assert len(begun) < 8


def test_a_long_list_shows_how_far_it_is(solver, monkeypatch, capsys):
    monkeypatch.setattr(batches, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the stream for a terminal
    results([small(NAMES[0])] * 3, solver, Wanted(), workers=2)
    assert "molecules" in capsys.readouterr().err
    monkeypatch.delenv("FORCE_COLOR")
    results([small(NAMES[0])] * 3, solver, Wanted(), workers=2)
    assert capsys.readouterr().err == ""


def test_an_empty_list(solver):
    assert results([], solver, Wanted()) == []
    assert np.size(results([], solver, Wanted(forces=True))) == 0
