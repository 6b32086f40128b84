"""The network as a pipeline: equal numbers, and each block with its weights on one IPU."""

import re

import jax
import numpy as np
import pytest
from packs import TINY, network, output, packed, qm9

from pyscf_ipu.ipu.steps.streams import Home
from schnet.errors import UserError
from schnet.training.costs.layout import PodLayout
from schnet.training.costs.staged_network import StagedSchNet, home


def test_stages_change_no_number():
    pack = packed(qm9([3, 30]), [0, 1])
    staged = StagedSchNet(TINY, jax.random.key(0), 2)
    np.testing.assert_array_equal(output(staged, pack), output(network(), pack))


def test_every_block_has_its_ipu_the_first_and_the_last_one_what_is_around():
    config = TINY.__class__(**(vars(TINY) | {"interactions": 5}))
    for stages, expected in ((2, [0, 0, 0, 1, 1]), (3, [0, 0, 1, 1, 2]), (5, [0, 1, 2, 3, 4])):
        staged = StagedSchNet(config, jax.random.key(0), stages)
        assert [staged.stage(i) for i in range(5)] == expected
        homes = {
            re.sub(r"\W+", ".", jax.tree_util.keystr(path)).strip("."): home(
                5, stages, path, offload=True
            )
            for path, _ in jax.tree.leaves_with_path({"mu": [staged], "x": staged})
        }
        del homes["mu.0.embedding"]
        assert homes["x.embedding"] == Home(0, False)
        assert homes["x.out_2.bias"] == Home(stages - 1, False)
        for i, ipu in enumerate(expected):
            assert homes[f"x.interactions.{i}.mix.weight"] == Home(ipu, False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stages": 3}, "--stages 3: the network has 2 interaction blocks; give 1 to 2"),
        ({"stages": 0}, "--stages 0"),
        ({"recompute": True}, "--recompute"),
        ({"schedule": "grouped"}, "--schedule"),
        ({"stages": 2, "schedule": "grouped", "inference": True}, "--schedule"),
        ({"offload_moments": True, "inference": True}, "--offload-moments"),
        ({"available_memory_proportion": 1.5}, "--available-memory-proportion 1.5"),
    ],
)
def test_what_a_network_cannot_is_one_sentence(options, says):
    with pytest.raises(UserError, match=says):
        PodLayout(**options).check(2, "float32")
    with pytest.raises(UserError, match="--precision"):
        PodLayout(inference=True).check(2, "float16")
    every = {"schedule": "grouped", "recompute": True, "offload_moments": True}
    PodLayout(stages=2, **every).check(2, "float16")
