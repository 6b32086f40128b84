"""Solvers that calls share: a second call compiles nothing, and `clear` lets go of them."""

import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

from pyscf_ipu import Settings, clear
from pyscf_ipu.api.calculator import Calculator
from pyscf_ipu.api.energies import solver_for
from pyscf_ipu.solver import shared
from pyscf_ipu.solver.shared import MOST, shared_solver


def test_calls_at_a_level_share_a_solver():
    assert solver_for(None, basis=None) is solver_for(None)
    assert solver_for(None) is shared_solver(Settings())
    assert solver_for(None, basis="6-31g") is shared_solver(Settings(basis="6-31g"))
    assert solver_for(None, basis="6-31g") is not shared_solver(Settings())
    assert Calculator(xc="hf").solver is Calculator(xc="hf").solver


def test_threads_that_call_first_at_the_same_moment_share_it(monkeypatch):
    """A solver that takes its time; without a lock every thread makes one."""

    class Slow(shared.Solver):
        def __init__(self, *args):
            time.sleep(0.05)
            super().__init__(*args)

    monkeypatch.setattr(shared, "Solver", Slow)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(shared_solver, [Settings(max_cycles=33)] * 4))
    assert len(found) == 1


def test_clear_lets_go_of_them():
    kept = weakref.ref(shared_solver(Settings(max_cycles=31)))
    assert kept() is not None
    clear()
    gc.collect()
    assert kept() is None


def test_old_levels_are_let_go():
    first = shared_solver(Settings(max_cycles=32))
    for n in range(MOST):
        shared_solver(Settings(max_cycles=40 + n))
    assert shared_solver(Settings(max_cycles=32)) is not first
