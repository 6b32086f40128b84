"""A network goes to PyTorch-Geometric and back; where torch is installed, it predicts there."""

import dataclasses
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from packs import TINY, network, qm9

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.errors import UserError
from schnet.network import pyg
from schnet.network.exports import pyg_weights
from schnet.network.predictor import Predictor
from schnet.samples.references import AtomReferences
from schnet.samples.targets import target_of

ELEMENTS = (1, 6, 7, 8, 9)


def predictor(readout):
    target = {"sum": "energy", "mean": "gap", "dipole": "dipole_norm"}[readout]
    config = dataclasses.replace(TINY, readout=readout)
    values = (-0.5, -38.0, -54.5, -75.0, -99.5) if readout == "sum" else (0.0,) * 5
    constant = {"sum": 0.03, "mean": 0.25, "dipole": 0.0}[readout]
    references = AtomReferences(ELEMENTS, values, constant, 0.07)
    return Predictor(network(config), config, references, target_of(target))


@pytest.mark.parametrize("readout", ["sum", "mean", "dipole"])
def test_there_and_back(readout, tmp_path):
    ours, rows = predictor(readout), qm9([3, 20, 41])
    found = pyg_weights.converted(ours)
    pyg_weights.write(tmp_path / "net.npz", found)
    facts = json.loads(str(np.load(tmp_path / "net.npz")["facts"]))
    assert facts["unit"] == ("e_angstrom" if readout == "dipole" else "ev")
    assert facts["arguments"]["readout"] == ("mean" if readout == "mean" else "add")
    weights = {k: v for k, v in pyg.read(tmp_path / "net.npz").items() if k != "facts"}
    back = pyg.convert(weights, readout, TINY.neighbours)
    for name in ("width", "filters", "interactions", "gaussians", "neighbours", "readout"):
        assert getattr(back.config, name) == getattr(ours.config, name)
    factor = target_of(facts["target"]).per_atomic(facts["unit"])
    values = np.zeros(5) if back.atom_references is None else back.atom_references[[*ELEMENTS]]
    references = AtomReferences(ELEMENTS, tuple((values / factor).tolist()), 0.0, 1 / factor)
    theirs = Predictor(back.model, back.config, references, ours.target)
    constant = facts["constant"] / factor
    np.testing.assert_allclose(theirs(rows) + constant, ours(rows), atol=2e-5)


def test_pytorch_geometric_predicts_the_same(tmp_path, monkeypatch):
    """By the lines of the page, which stand for what a reader does."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[4] / "docs" / "schnet.md").read_text()
    (lines,) = re.findall(r"```python\n(import torch\n.*?)```", page, re.DOTALL)
    for readout in ("sum", "mean"):
        ours, rows = predictor(readout), qm9([3, 20, 41])
        pyg_weights.write(tmp_path / "gap.pt", pyg_weights.converted(ours))
        names: dict = {}
        exec(lines, names)
        batch = np.repeat(np.arange(len(rows)), rows.sizes)
        with torch.no_grad():
            got = names["net"](
                torch.from_numpy(rows.numbers.astype(np.int64)),
                torch.from_numpy(rows.positions_bohr * np.float32(BOHR_TO_ANGSTROM)),
                torch.from_numpy(batch),
            )
        got = got[:, 0].numpy() + names["found"]["constant"]
        scale = 1.0 if readout == "mean" else 1e4  # float32 holds eV of total energies that well
        np.testing.assert_allclose(got, ours(rows) * HARTREE_TO_EV, atol=2e-6 * scale)


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"must end in \.pt or \.npz"):
        pyg_weights.write(tmp_path / "net.bin", pyg_weights.converted(predictor("mean")))


def test_without_torch_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackage, match=r"run pip install .*torch.*, or .* a \.npz file"):
        pyg_weights.write(tmp_path / "net.pt", pyg_weights.converted(predictor("mean")))
