"""JAX's equations by their parts, in the forms of every version; what is not known is refused."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive
from jax.sharding import PartitionSpec

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu import BOW
from pyscf_ipu.ipu.pricing.pricer import Pricer, Pricing
from pyscf_ipu.ipu.pricing.rules import RULES
from pyscf_ipu.ipu.vertices.cycles import count
from pyscf_ipu.ipu.vertices.jax_equations import refuse_program, scan_of
from pyscf_ipu.ipu.vertices.trip_counts import sites

X = jnp.ones((4, 4), jnp.float32)


REMAT = jax.make_jaxpr(jax.checkpoint(jnp.sin))(X).eqns[0].primitive.name


@jax.custom_jvp
def twice(x):
    return 2.0 * x


twice.defjvps(lambda t, ans, x: 2.0 * t)


def scanned(x, c):
    """Two constants, one carried value, two arrays whose rows are read."""
    return lax.scan(lambda y, rows: (y * c + x[0] * rows[0], rows[1]), x[0], (x, 2.0 * x))


def sharded(x):
    mesh = jax.make_mesh((1,), ("replicas",))
    spec = PartitionSpec()
    return jax.shard_map(lambda y: y + 1.0, mesh=mesh, in_specs=spec, out_specs=spec)(x)


def convolved(x):
    kernel = jnp.ones((3, 3, 1, 2), jnp.float32)
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


PROGRAMS = {
    "scan": lambda x: scanned(x, 2.0 * x[0]),
    "while": lambda x: lax.while_loop(lambda y: y[0, 0] < 9.0, lambda y: y * 2.0, x),
    "cond": lambda x: lax.cond(x[0, 0] > 0.0, lambda y: y, lambda y: 2.0 * y, x),
    "jit": jax.jit(lambda x: x + 1.0),
    "custom_jvp_call": twice,
    REMAT: jax.checkpoint(jnp.sin),
    "shard_map": sharded,
    "dot_general": lambda x: x @ x,
    "conv_general_dilated": lambda x: convolved(x[None, :, :, None]),
    "sort": lambda x: lax.sort(x),
    "top_k": lambda x: lax.top_k(x, 2),
    "reduce_sum": lambda x: jnp.sum(x),
    "cumsum": lambda x: lax.cumsum(x),
}
SOLVED = {
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda v: x @ v, x[0], solve=lambda product, b: product(b)
    )
}


def rewritten(closed, name, **changes):
    """The program with one kind of equation changed."""
    changed = [
        e.replace(**{k: change(e) for k, change in changes.items()})
        if e.primitive.name == name
        else e
        for e in closed.jaxpr.eqns
    ]
    assert any(e.primitive.name == name for e in closed.jaxpr.eqns)
    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=changed))


def priced(closed):
    pricer = Pricer(BOW, 1472, Pricing(RULES))
    ins = [pricer.new(v.aval, "argument") for v in closed.jaxpr.invars]
    pricer.block(closed.jaxpr, closed.consts, ins, ())
    return pricer


def as_before_0_11(eqn):
    kept = {k: v for k, v in eqn.params.items() if k not in ("ft_in", "ft_out")}
    loop = scan_of(eqn)
    return kept | {"num_consts": loop.n_consts, "num_carry": loop.n_carry}


def as_since_0_11(eqn):
    kept = {k: v for k, v in eqn.params.items() if k not in ("num_consts", "num_carry")}
    n_consts, n_carry = scan_of(eqn)[1:3]
    sizes = n_consts, n_carry, len(eqn.invars) - n_consts - n_carry
    return kept | {"ft_in": SimpleNamespace(unpack=lambda: tuple((None,) * n for n in sizes))}


@pytest.mark.parametrize("form", [lambda e: e.params, as_before_0_11, as_since_0_11])
def test_the_operands_of_a_scan_in_both_forms(form):
    closed = rewritten(jax.make_jaxpr(scanned)(X, X[0]), "scan", params=form)
    (eqn,) = (e for e in closed.jaxpr.eqns if e.primitive.name == "scan")
    loop = scan_of(eqn)
    assert (loop.n_consts, loop.n_carry, loop.length, loop.reverse) == (2, 1, 4, False)
    # [4] y * c, x[0] * row, their sum, four times; and 2 x before
    assert count(closed.jaxpr).vector_cycles == 4 * 3 * 2 + 8


def test_the_operands_of_a_loop_that_differentiation_made():
    def backward(x):
        return jax.vjp(lambda y: scanned(y, y[0]), x)[1]((x[0], x))

    loops = [
        (scan_of(e), e)
        for e in jax.make_jaxpr(backward)(X).jaxpr.eqns
        if e.primitive.name == "scan"
    ]
    assert [loop.reverse for loop, _ in loops] == [False, True]
    for loop, eqn in loops:
        rows = loop.n_consts + loop.n_carry
        for i, (outer, inner) in enumerate(zip(eqn.invars, loop.body.jaxpr.invars, strict=True)):
            assert outer.aval.shape == ((4,) if i >= rows else ()) + inner.aval.shape


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_name_of_a_parameter_is_refused_by_version_and_equation(name):
    closed = jax.make_jaxpr(PROGRAMS[name])(X)
    priced(closed)
    renamed = rewritten(
        closed, name, params=lambda e: {f"later_{k}": v for k, v in e.params.items()}
    )
    with pytest.raises(UsageError, match=f"JAX {jax.__version__} writes the equation {name} wi"):
        priced(renamed)


@pytest.mark.parametrize(
    ("name", "walk"),
    [(name, walk) for name in ("scan", "while", "cond") for walk in (count, lambda j: [*sites(j)])]
    + [("custom_linear_solve", count)],
)
def test_what_is_not_known_is_refused_inside_a_vertex_and_by_the_count_of_trips(name, walk):
    closed = jax.make_jaxpr((PROGRAMS | SOLVED)[name])(X)
    walk(closed.jaxpr)
    renamed = rewritten(closed, name, params=lambda e: {"later": 1})
    with pytest.raises(UsageError, match=f"JAX {jax.__version__} writes the equation {name} wi"):
        walk(renamed.jaxpr)


def test_a_parameter_of_another_kind_is_refused():
    closed = jax.make_jaxpr(PROGRAMS["scan"])(X)
    odd = rewritten(closed, "scan", params=lambda e: e.params | {"length": (4,)})
    with pytest.raises(UsageError, match="scan with a tuple as length"):
        priced(odd)
    odd = rewritten(closed, "scan", params=lambda e: as_since_0_11(e) | {"ft_in": (1, 1, 2)})
    with pytest.raises(UsageError, match="scan with ft_in of another kind"):
        priced(odd)


@pytest.mark.parametrize("walk", [priced, lambda closed: count(closed.jaxpr)])
def test_a_call_that_is_not_known_does_not_cost_nothing(walk):
    closed = jax.make_jaxpr(PROGRAMS["jit"])(X)
    later = rewritten(closed, "jit", primitive=lambda e: Primitive("later_call"))
    with pytest.raises(UsageError, match="the equation later_call which runs a program"):
        walk(later)


def test_the_function_of_a_reduction_is_no_program():
    def fn(x):
        return lax.reduce(x, np.float32(0), lambda a, b: a + 2.0 * b, (0,))

    closed = jax.make_jaxpr(fn)(X)
    assert [name for name, _ in priced(closed).unknown] == ["reduce"]
    refuse_program(closed.jaxpr.eqns[-1])


@pytest.mark.parametrize(
    ("fn", "cycles"),
    [
        # 16 elements: eight vectors; four operations until 0.10, and two with a new one since
        (jnp.tanh, 8 * (12 + 4)),
        # two products, and e^-x^2, which is a function of fifteen operations since 0.12
        (lax.erf, 16 * 41 + 8 * (1 + 1 + 2 + 2 + 6)),
    ],
)
def test_a_derivative_costs_the_same_in_every_form(fn, cycles):
    cost = count(jax.make_jaxpr(lambda x, t: jax.jvp(fn, (x,), (t,)))(X, X).jaxpr)
    assert not cost.unknown
    assert cost.vector_cycles == cycles


@pytest.mark.parametrize(
    ("name", "operands", "cycles"),
    [("polynomial", (X, (1.0, 2.0, 3.0)), 8 * 4), ("log2", (X,), 8 * (12 + 10))],
)
def test_newer_operations_cost_what_they_mean(name, operands, cycles):
    if not hasattr(lax, f"{name}_p"):
        pytest.skip(f"JAX {jax.__version__} has no {name}")
    fn = {"polynomial": lambda *a: lax.polynomial(*a), "log2": jnp.log2}[name]
    closed = jax.make_jaxpr(lambda x: fn(x, *operands[1:]))(X)
    assert count(closed.jaxpr).vector_cycles == cycles
    assert priced(closed).unknown == []


def test_a_function_of_a_users_own_means_what_it_says():
    @jax.custom_jvp
    def exp_neg_sq(x):
        return x + 1.0

    exp_neg_sq.defjvps(lambda t, ans, x: t)
    assert count(jax.make_jaxpr(exp_neg_sq)(X).jaxpr).vector_cycles == 8
