"""QCEngine's own front door: energies through it, and geomeTRIC with a constraint."""

import numpy as np
import pytest
import qcengine

import pyscf_ipu as pi
import pyscf_ipu.interop.qcengine as ours

WATER = {"symbols": ["O", "H", "H"], "geometry": [0, 0, 0, 0, 1.43, 1.1, 0, -1.43, 1.1]}
LEVEL = {"model": {"method": "pbe", "basis": "sto-3g"}, "keywords": {"grid_level": 0}}


def test_it_is_a_program_of_qcengine():
    assert ours.NAME in qcengine.list_available_programs()
    assert qcengine.get_program(ours.NAME).get_version() == pi.__version__
    answer = qcengine.compute({"molecule": WATER, "driver": "energy", **LEVEL}, ours.NAME)
    numbers, positions = [8, 1, 1], np.reshape(WATER["geometry"], (3, 3))
    assert (
        answer.return_result
        == pi.rks(pi.Molecule(numbers, positions), xc="pbe", grid_level=0).energy
    )
    wrong = LEVEL | {"model": {"method": "pbe", "basis": "no-such"}}
    failed = qcengine.compute({"molecule": WATER, "driver": "energy", **wrong}, ours.NAME)
    assert failed.error.error_type == "input_error"


@pytest.mark.long
def test_geometric_holds_an_angle():
    pytest.importorskip("geometric")
    held = {"set": [{"type": "angle", "indices": [1, 0, 2], "value": 110.0}]}
    ended = qcengine.compute(
        {
            "initial_molecule": WATER,
            "keywords": {"program": ours.NAME, "constraints": held},
            "input_specification": {"driver": "gradient", **LEVEL},
        },
        "geometric",
    )
    assert ended.success, ended.error.error_message
    oxygen, *hydrogens = ended.final_molecule.geometry
    first, second = (h - oxygen for h in hydrogens)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert np.degrees(np.arccos(cosine)) == pytest.approx(110.0, abs=0.1)
    assert ended.energies[-1] < ended.energies[0]
