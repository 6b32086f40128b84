"""SchNet: continuous-filter convolutions over the pairs of a pack of molecules.

K. T. Schütt, H. E. Sauceda, P.-J. Kindermans, A. Tkatchenko, K.-R. Müller, J. Chem. Phys. 148,
241722 (2018), doi:10.1063/1.5019779, with the biases and the cosine cutoff of the implementation in
PyTorch-Geometric, so that its weights can be loaded (`schnet.network.pyg`).

Shape legend: A atom slots, M molecule slots, E pair slots of a pack, H width, F filters,
K Gaussians.
"""

from contextlib import AbstractContextManager, nullcontext

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, PRNGKeyArray

from schnet.network.config import ModelConfig, Readout
from schnet.network.pack import AnyArray, Pack

ELEMENTS = 100
"""Rows of the embedding, one per atomic number; row 0 belongs to empty slots."""


@jax.custom_jvp
def shifted_softplus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """ln((1 + e^x) / 2): smooth, and zero at zero."""
    half = jnp.asarray(0.5, x.dtype)
    return jnp.maximum(x, 0) + jnp.log(half + half * jnp.exp(-jnp.abs(x)))


@shifted_softplus.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # By hand: the rule that JAX derives takes several passes over the largest array of the network.
    (x,), (dx,) = primals, tangents
    return shifted_softplus(x), dx * jax.nn.sigmoid(x)


class Linear(eqx.Module):
    """x W + b for rows of x."""

    weight: Float[Array, "n_in n_out"]
    bias: Float[Array, " n_out"] | None

    def __init__(self, n_in: int, n_out: int, key: PRNGKeyArray, bias: bool = True) -> None:
        # Xavier's uniform distribution, zero biases: X. Glorot, Y. Bengio, AISTATS 9, 249 (2010).
        limit = (6.0 / (n_in + n_out)) ** 0.5
        shape = (n_in, n_out)
        self.weight = jax.random.uniform(key, shape, jnp.float32, -limit, limit)
        self.bias = jnp.zeros(n_out, jnp.float32) if bias else None

    def __call__(self, x: Float[Array, "rows n_in"]) -> Float[Array, "rows n_out"]:
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class InteractionBlock(eqx.Module):
    """One interaction block: neighbours contribute through filters of their distance."""

    filter_in: Linear
    filter_out: Linear
    before: Linear
    after: Linear
    mix: Linear

    def __init__(self, config: ModelConfig, key: PRNGKeyArray) -> None:
        k = jax.random.split(key, 5)
        self.filter_in = Linear(config.gaussians, config.filters, k[0])
        self.filter_out = Linear(config.filters, config.filters, k[1])
        self.before = Linear(config.width, config.filters, k[2], bias=False)
        self.after = Linear(config.filters, config.width, k[3])
        self.mix = Linear(config.width, config.width, k[4])

    def filters(
        self, gaussians: Float[Array, "E K"], cutoff: Float[Array, " E"]
    ) -> Float[Array, "E F"]:
        """Filters at each distance; both directions of a pair share them."""
        return self.filter_out(shifted_softplus(self.filter_in(gaussians))) * cutoff[:, None]

    def __call__(
        self, x: Float[Array, "A H"], filters: Float[Array, "E F"], pack: Pack
    ) -> Float[Array, "A H"]:
        summed = convolve(self.before(x), filters, pack)
        return self.mix(shifted_softplus(self.after(summed)))


def convolve(
    x: Float[Array, "A F"], filters: Float[Array, "E F"], pack: Pack
) -> Float[Array, "A F"]:
    """For every atom i, the sum over its neighbours j of x_j times the filter of the pair."""
    to_i = pack.to_i.astype(x.dtype)[:, None]
    to_j = pack.to_j.astype(x.dtype)[:, None]
    out = jnp.zeros_like(x)
    out = out.at[pack.pair_i].add(x[pack.pair_j] * (filters * to_i))
    return out.at[pack.pair_j].add(x[pack.pair_i] * (filters * to_j))


class SchNet(eqx.Module):
    """The network: one number per molecule, in units of the standard deviation of the target."""

    embedding: Float[Array, "elements H"]
    interactions: list[InteractionBlock]
    out_1: Linear
    out_2: Linear
    cutoff_bohr: float = eqx.field(static=True)
    n_gaussians: int = eqx.field(static=True)
    readout: Readout = eqx.field(static=True)

    def __init__(self, config: ModelConfig, key: PRNGKeyArray) -> None:
        k = jax.random.split(key, config.interactions + 3)
        self.embedding = jax.random.normal(k[0], (ELEMENTS, config.width), jnp.float32)
        self.interactions = [InteractionBlock(config, one) for one in k[3:]]
        self.out_1 = Linear(config.width, config.width // 2, k[1])
        self.out_2 = Linear(config.width // 2, 1, k[2])
        self.cutoff_bohr = config.cutoff_bohr
        self.n_gaussians = config.gaussians
        self.readout = config.readout

    def __call__(self, pack: Pack) -> Float[Array, " M"]:
        """Predictions for the molecules of a pack; zero or near it in empty slots.

        The layers compute in the dtype of their parameters; distances, Gaussians and the sum over
        atoms stay in float32.
        """
        return self.with_filters(self.filters(pair_distances(pack)), pack)

    def filters(self, distance_bohr: Float[Array, " E"]) -> list[Float[Array, "E F"]]:
        """Filters of every interaction block at some distances."""
        described = self.described(distance_bohr)
        return [interaction.filters(*described) for interaction in self.interactions]

    def described(
        self, distance_bohr: Float[Array, " E"]
    ) -> tuple[Float[Array, "E K"], Float[Array, " E"]]:
        """Gaussians and cutoff function of some distances."""
        dtype = self.embedding.dtype
        gaussians = smear(distance_bohr, self.n_gaussians, self.cutoff_bohr).astype(dtype)
        return gaussians, cosine_cutoff(distance_bohr, self.cutoff_bohr).astype(dtype)

    def block(self, number: int) -> AbstractContextManager[None]:
        """What an interaction block is traced in; a pipeline names its IPU there."""
        return nullcontext()

    def with_filters(self, filters: list[Float[Array, "E F"]], pack: Pack) -> Float[Array, " M"]:
        """Compute energies with given filters of every block for the pairs of the pack."""
        x = self.embedding[pack.numbers]
        for i, (block, its_filters) in enumerate(zip(self.interactions, filters, strict=True)):
            with self.block(i):
                x = x + block(x, its_filters, pack)
        atomwise = self.out_2(shifted_softplus(self.out_1(x)))[:, 0].astype(jnp.float32)
        return self._read(jnp.where(pack.numbers > 0, atomwise, 0.0), pack)

    def _read(self, atomwise: Float[Array, " A"], pack: Pack) -> Float[Array, " M"]:
        if self.readout == "dipole":
            vectors = atomwise[:, None] * (pack.positions_bohr - pack.centre_bohr[pack.molecule])
            return norm(_per_molecule(vectors, pack.molecule, pack.n_molecules))
        total = _per_molecule(atomwise, pack.molecule, pack.n_molecules)
        if self.readout == "mean":
            ones = (pack.numbers > 0).astype(jnp.float32)
            return total / jnp.maximum(_per_molecule(ones, pack.molecule, pack.n_molecules), 1.0)
        return total


def pair_distances(pack: Pack) -> Float[Array, " E"]:
    """Distances of the pairs in Bohr; 1 in empty slots, so that gradients stay finite."""
    taken = pack.to_i | pack.to_j
    apart = pack.positions_bohr[pack.pair_i] - pack.positions_bohr[pack.pair_j]
    return jnp.sqrt(jnp.where(taken, jnp.sum(apart * apart, axis=1), 1.0))


def smear(distance: Float[Array, " E"], count: int, cutoff_bohr: float) -> Float[Array, "E K"]:
    """Gaussians of the distance: centres evenly from 0 to the cutoff, as wide as their spacing."""
    centres = jnp.linspace(0.0, cutoff_bohr, count, dtype=jnp.float32)
    width = cutoff_bohr / (count - 1)
    return jnp.exp(-0.5 / width**2 * (distance[:, None] - centres) ** 2)


def cosine_cutoff(distance: Float[Array, " E"], cutoff_bohr: float) -> Float[Array, " E"]:
    """From 1 at distance 0 to 0 at the cutoff."""
    return 0.5 * (jnp.cos(distance * (jnp.pi / cutoff_bohr)) + 1.0)


def norm(vectors: Float[Array, "M 3"]) -> Float[Array, " M"]:
    """Lengths; the gradient is zero where a vector vanishes."""
    squares = jnp.sum(vectors * vectors, axis=1)
    safe = jnp.where(squares > 0.0, squares, 1.0)
    return jnp.where(squares > 0.0, jnp.sqrt(safe), 0.0)


def _per_molecule(
    values: Float[AnyArray, " A *rest"], molecule: Int[AnyArray, " A"], count: int
) -> Float[Array, " M *rest"]:
    return jax.ops.segment_sum(values, molecule, num_segments=count)


def count_parameters(model: SchNet) -> int:
    """Number of trained parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(model))
