"""Traffic with the host: what goes in and out of a program, and what stays on the IPUs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.chip.quantity import weakest
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.chip.transfer import host_seconds
from pyscf_ipu.ipu.profile.data import Cycles, Step


class Home(NamedTuple):
    """Where an argument, or the result in its place, is between two calls."""

    ipu: int | None = None
    """In a program of stages; None for that of the first stage that uses it."""
    off_chip: bool = False
    """In streaming memory; what reads it first loads it."""


class Moved(NamedTuple):
    """Bytes of one replica, in and out of a call, and where its arrays are."""

    into: float
    outof: float
    homes: tuple[Home, ...]
    """Of the arrays of all arguments."""
    results: tuple[Home, ...]
    overlap: bool = False
    """They travel beside the program."""


@dataclass(frozen=True)
class Streams:
    """Which arguments stay, and whether traffic runs beside the program."""

    resident: frozenset[int] = frozenset()
    """Numbers of the arguments that stay on the IPUs."""
    overlap: bool = False
    home: Callable[[tuple[object, ...]], Home] = lambda _: Home()
    """Of an array, by its path in the arguments or results (`jax.tree_util`)."""

    def bytes_of(self, args: tuple[object, ...], out: object) -> Moved:
        """Bytes in and out of a call with these arguments and a result of these shapes.

        Raises:
            UsageError: An argument that is to stay is not there.
        """
        absent = [i for i in self.resident if not 0 <= i < len(args)]
        if absent:
            raise UsageError(
                f"resident={sorted(self.resident)}: the program has arguments 0 to {len(args) - 1}"
            )
        staying = Counter(_shapes(args[i]) for i in self.resident)
        into = sum(_bytes(x) for i, x in enumerate(args) if i not in self.resident)
        parts = out if type(out) is tuple else (out,)
        outof = 0
        for part in parts:
            if staying[_shapes(part)]:
                staying[_shapes(part)] -= 1
            else:
                outof += _bytes(part)
        homes, results = (
            tuple(self.home(path) for path, _ in jax.tree.leaves_with_path(x)) for x in (args, out)
        )
        return Moved(float(into), float(outof), homes, results=results, overlap=self.overlap)


ALL_TRAVELS = Streams()
UNKNOWN = Moved(0.0, 0.0, (), results=())
"""Of a program whose traffic nobody asks for."""


def host_steps(
    target: Target, moved: Moved, replicas: int, num_ipus: int
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The streams before and after a program; their cycles are not the device's."""

    def step(name: str, nbytes: float) -> tuple[Step, ...]:
        low, _, high = host_seconds(target, nbytes, replicas, num_ipus=num_ipus)
        stream = Step(
            kind="host",
            name=name,
            stage="host",
            cycles=Cycles(low * clock, high * clock),
            tiles=num_ipus * int(target.tiles_per_ipu),
            moved_bytes=nbytes,
            how=weakest(target.host_bandwidth_low.how, target.host_bandwidth_high.how),
            source="bytes over the rates that programs were seen to reach, shared by a machine",
            overlapped=moved.overlap,
        )
        return (stream,) if nbytes else ()

    clock = float(target.tile_clock_frequency)
    return step("stream in", moved.into), step("stream out", moved.outof)


def _shapes(x: Any) -> object:
    leaves, tree = jax.tree.flatten(x)
    return tree, tuple((np.shape(v), str(_dtype(v))) for v in leaves)


def _bytes(x: Any) -> int:
    return sum(int(np.prod(np.shape(v))) * _dtype(v).itemsize for v in jax.tree.leaves(x))


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else jax.numpy.result_type(x)
