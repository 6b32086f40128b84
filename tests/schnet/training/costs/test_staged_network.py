"""The network as a pipeline: equal numbers, and each block with its weights on one IPU."""

import re

import jax
import numpy as np
import pytest
from packs import TINY, network, output, packed, qm9

from pyscf_ipu.ipu.steps.streams import Home
from schnet.errors import UserError
from schnet.training.costs.layout import Layout
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
            re.sub(r"\W+", ".", jax.tree_util.keystr(path)).strip("."): home(path, 5, stages, True)
            for path, _ in jax.tree.leaves_with_path({"mu": [staged], "x": staged})
        }
        del homes["mu.0.embedding"]
        assert homes["x.embedding"] == Home(0, False)
        assert homes["x.out_2.bias"] == Home(stages - 1, False)
        for i, ipu in enumerate(expected):
            assert homes[f"x.interactions.{i}.mix.weight"] == Home(ipu, False)


@pytest.mark.parametrize(
    ("layout", "trains", "says"),
    [
        (Layout(stages=3), True, "--stages 3: the network has 2 interaction blocks; give 1 to 2"),
        (Layout(stages=0), True, "--stages 0"),
        (Layout(recompute=True), True, "--recompute"),
        (Layout(schedule="grouped"), True, "--schedule"),
        (Layout(stages=2, schedule="grouped"), False, "--schedule"),
        (Layout(offload_moments=True), False, "--offload-moments"),
        (Layout(available_memory_proportion=1.5), True, "--available-memory-proportion 1.5"),
    ],
)
def test_what_a_network_cannot_is_one_sentence(layout, trains, says):
    with pytest.raises(UserError, match=says):
        layout.check(blocks=2, trains=trains)
    Layout(stages=2, schedule="grouped", recompute=True, offload_moments=True).check(2, trains=True)
