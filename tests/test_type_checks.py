"""Signatures of the packages are checked while the tests run, with and without arrays."""

import numpy as np
import pytest

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.numerics.two_words import Pair, two_sum
from qm1b.folder.manifest.versions import constraints
from qm1b.folder.manifest.work_units import Share
from qm1b.reference.atomisation import atomisation_energies
from schnet.samples.samples import texts


@pytest.fixture(autouse=True)
def are_checked(request):
    """They are in `.ci/run`."""
    if not request.config.getoption("--jaxtyping-packages"):
        pytest.skip("types are checked with --jaxtyping-packages, as .ci/run has it")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: counted("3", "row"),
        lambda: constraints("constraints.txt"),
        lambda: Share("0", 2),  # of a dataclass
        lambda: texts(3),
    ],
)
def test_functions_without_arrays_refuse_other_types(wrong):
    with pytest.raises(Exception, match=r"violates type hint|Type-check error"):
        wrong()


def test_functions_with_arrays_refuse_other_shapes_and_types():
    energy, numbers, ends = np.zeros(1), np.array([1, 1], np.uint8), np.array([0, 2])
    assert atomisation_energies(energy, numbers, ends, {"H": -0.5}).shape == (1,)
    for row in (energy.astype(np.float32), energy[None], [0.0]):
        with pytest.raises(Exception, match=r"Type-check error"):
            atomisation_energies(row, numbers, ends, {"H": -0.5})


def test_sizes_of_one_name_must_agree():
    import jax.numpy as jnp

    a, b = jnp.zeros((2, 3), jnp.float32), jnp.zeros((3, 2), jnp.float32)
    assert isinstance(two_sum(a, a)[0], type(a))
    with pytest.raises(Exception, match=r"Type-check error|incompatible|broadcast"):
        two_sum(a, b)
    assert Pair(a, a).hi.shape == (2, 3)
