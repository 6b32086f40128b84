"""The loop of one start: cycles from a guess until D stands still, or until there were enough."""

from functools import partial

import jax.numpy as jnp
from jax import lax

from pyscf_ipu.numerics.arrays import Flag, FloatSNN
from pyscf_ipu.scf.convergence import Aids, once_cold
from pyscf_ipu.scf.cycle import Begin, CycleState, ScfProblem, cycle
from pyscf_ipu.scf.diis import diis_start
from pyscf_ipu.scf.run import ScfRun
from pyscf_ipu.scf.staged import empty_run, first_stage

DIIS_DEPTH = 8


def iterate(problem: ScfProblem, begin: Begin, aids: Aids) -> tuple[ScfRun, FloatSNN]:
    """The run of one start, and its last orbitals in the orthonormal basis.

    If the loop ends in an excited state, or is lost, it starts once more from the same guess, with
    a level shift and as many cycles more.  A non-finite energy ends it as not converged.
    """

    def unfinished(state: CycleState) -> Flag:
        run = state.run
        finite = (run.cycles == 0) | jnp.isfinite(run.energies.hi[0])
        if problem.cycling.fixed:
            return (run.cycles < problem.max_cycles) & finite
        goes_on = (run.cycles < problem.limit(state)) | run.converged
        return ~state.final & goes_on & finite

    def wanted(state: CycleState) -> Flag:
        return begin.wanted & unfinished(state)

    first, following = _first(problem, begin, aids), partial(cycle, problem, begin)
    if isinstance(problem.max_cycles, int) and problem.max_cycles == 1:
        end = following(first)
    else:
        condition = wanted if problem.cycling.tries_others else unfinished
        end = lax.while_loop(condition, following, first)
    run = end.run
    if end.smearing is not None and begin.smearing is not None:
        run = run._replace(fractional=(end.smearing < begin.smearing) & ~run.converged)
    return run, end.Cx


def _first(problem: ScfProblem, begin: Begin, aids: Aids) -> CycleState:
    """The state before the first cycle of a start."""
    n, dtype = begin.D.shape[-1], begin.D.dtype
    diis = diis_start(DIIS_DEPTH, n, dtype, spins=2 if begin.D.ndim == 3 else 0)
    return CycleState(
        run=empty_run(problem.fock, begin.D)._replace(history=begin.history),
        D=begin.D,
        Dx=begin.Dx,
        Cx=begin.Cx,
        diis=diis,
        stage=first_stage(problem.fock, begin.D, diis),
        best=jnp.full((), jnp.inf, dtype),
        stalled=jnp.zeros((), jnp.int32),
        aids=aids,
        unaided=once_cold(jnp.asarray(aids.is_plain()), begin.smearing),
        final=jnp.zeros((), bool),
        second=jnp.zeros((), jnp.int32),
        smearing=begin.smearing,
    )
