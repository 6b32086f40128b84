"""The ONNX graph, computed by onnxruntime, predicts what the network does."""

import dataclasses

import numpy as np
import pytest
from packs import TINY, network, qm9

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.errors import UserError
from schnet.network.exports import onnx_graph
from schnet.network.predictor import Predictor
from schnet.samples.references import AtomReferences
from schnet.samples.targets import target_of

pytest.importorskip("onnx", reason="the extra onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

ELEMENTS = (1, 6, 7, 8, 9)


def predictor(readout, **changes):
    config = dataclasses.replace(TINY, readout=readout, **changes)
    values = (-0.5, -38.0, -54.5, -75.0, -99.5) if readout == "sum" else (0.0,) * 5
    references = AtomReferences(ELEMENTS, values, 0.25, 0.07)
    target = target_of("energy" if readout == "sum" else "gap")
    return Predictor(network(config), config, references, target)


def by_onnx(path, rows):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = {
        "numbers": rows.numbers.astype(np.int64),
        "positions": rows.positions_bohr * np.float32(BOHR_TO_ANGSTROM),
        "molecule": np.repeat(np.arange(len(rows)), rows.sizes),
    }
    return session.run(None, inputs)[0]


@pytest.mark.parametrize(
    ("readout", "changes"), [("sum", {}), ("mean", {}), ("mean", {"neighbours": 4})]
)
def test_it_predicts_the_same(readout, changes, tmp_path):
    """Also with fewer neighbours than a molecule has atoms, and for any number of molecules."""
    ours, path = predictor(readout, **changes), tmp_path / "net.onnx"
    onnx_graph.write(path, ours)
    for rows in (qm9([3, 20, 41, 7]), qm9([0])):
        got = by_onnx(path, rows)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, ours(rows) * HARTREE_TO_EV, rtol=0, atol=2e-5)


def test_the_cutoff_counts(tmp_path):
    """Two molecules far apart in space, and one far from itself."""
    path, ours = tmp_path / "net.onnx", predictor("mean", cutoff_bohr=3.0)
    onnx_graph.write(path, ours)
    rows = qm9([20, 41])
    np.testing.assert_allclose(by_onnx(path, rows), ours(rows) * HARTREE_TO_EV, atol=2e-5)
    assert np.abs(ours(rows) - predictor("mean")(rows)).max() > 1e-4


def test_dipoles_are_refused():
    with pytest.raises(UserError, match="--pyg takes dipoles"):
        onnx_graph.model(predictor("dipole"))
