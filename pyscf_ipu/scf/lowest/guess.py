"""Where the SCF of an open shell begins: how the spins are parted."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from jax import Array

from pyscf_ipu.numerics.arrays import Flag, FloatA


class Guess(NamedTuple):
    """Where the SCF of an open shell begins."""

    polarised: FloatA  # spin density over density of the superposed atoms: -1 to 1
    mixes: Flag  # whether it begins again with frontier orbitals mixed


SpinGuess = str | Sequence[float | int]
"""The guess of an open shell: "atoms", "mixed", or the unpaired electrons of each atom, beta's
negative."""


def guess_of(
    spins: SpinGuess, numbers: np.ndarray, order: np.ndarray, dtype: type[np.floating]
) -> Guess:
    """The guess for atoms of these numbers, in slots that hold them in this order (-1: none)."""
    polarised = np.zeros(len(order), dtype)
    if not isinstance(spins, str):
        share = np.clip(np.asarray(spins, np.float64) / numbers, -1.0, 1.0)
        polarised[order >= 0] = share[order[order >= 0]]
    return Guess(cast(Array, polarised), cast(Array, np.bool_(spins == "mixed")))


def no_guesses(size: int, n_atoms: int, dtype: type[np.floating]) -> Guess:
    """Arrays of a batch, to compile with."""
    return Guess(cast(Array, np.zeros((size, n_atoms), dtype)), cast(Array, np.zeros(size, bool)))
