"""Arrays as parameters of JAX primitives, which have to be hashable."""

import numpy as np

Constant = np.ndarray | np.generic | float


class Frozen:
    """A number or NumPy array known at trace time; equal if type, shape and every byte are."""

    def __init__(self, value: Constant) -> None:
        self.value = value
        array = np.asarray(value)
        self._key = (array.dtype.str, array.shape, array.tobytes())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._key == other._key

    def __repr__(self) -> str:
        return f"Frozen{self._key[1]}"
