"""Net force and torque of a molecule: zero for exact forces, so they show the error of others.

Nothing outside acts on a molecule, so forces that are the derivative of one energy add up to
nothing, and so do their moments.
"""

import numpy as np
from jaxtyping import Float


def net_force(forces: Float[np.ndarray, "A 3"]) -> Float[np.ndarray, " 3"]:
    """The sum of the forces, in Hartree/Bohr as they are."""
    return np.asarray(forces, np.float64).sum(axis=0)


def torque(
    positions: Float[np.ndarray, "A 3"], forces: Float[np.ndarray, "A 3"]
) -> Float[np.ndarray, " 3"]:
    """The sum of the moments of the forces about the centre of the nuclei, in Hartree.

    The centre is the mean position.  Any other point gives the same if the net force is zero.

    Args:
        positions: Bohr.
        forces: Hartree/Bohr.
    """
    arms = np.asarray(positions, np.float64)
    arms = arms - arms.mean(axis=0) if len(arms) else arms
    return np.cross(arms, np.asarray(forces, np.float64)).sum(axis=0)
