"""A network as an ONNX graph, from atomic numbers and positions to the target, references included.

Inputs are atoms of several molecules in a row: `numbers` [A], `positions` [A, 3] in Angstrom, and
`molecule` [A], the number of the molecule of each atom, from 0 and ascending. The output is
`prediction` [M] in float64. The network computes in float32, references are added in float64.
All pairs of atoms are looked at, so give some hundreds of atoms at a time, not a whole dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from qm1b.storage.files import atomic_write
from schnet.errors import UserError
from schnet.network.model import InteractionBlock, Linear
from schnet.network.predictor import Predictor
from schnet.samples.references import HIGHEST

OPSET = 18
IR_VERSION = 9
"""Of the file format; readers refuse files newer than they are."""


class _Graph:
    """Nodes and constants of a graph, which get names by themselves."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: object, dtype: type = np.float32) -> str:
        """The name of an array."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def __call__(self, operation: str, *inputs: str, outputs: int = 1, **attributes: object) -> Any:
        """Add an operation; returns the name of its output, or of all outputs."""
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(self.helper.make_node(operation, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def axes(self, value: str, *axes: int) -> str:
        """Axes of length one added."""
        return self("Unsqueeze", value, self.constant(axes, np.int64))

    def total(self, value: str, axis: int) -> str:
        """Sum over an axis."""
        return self("ReduceSum", value, self.constant([axis], np.int64), keepdims=0)

    def linear(self, x: str, layer: Linear) -> str:
        """x W + b."""
        y = self("MatMul", x, self.constant(layer.weight))
        return y if layer.bias is None else self("Add", y, self.constant(layer.bias))

    def activated(self, x: str) -> str:
        """Shifted softplus."""
        return self("Sub", self("Softplus", x), self.constant(np.log(2.0)))

    def cast(self, x: str, dtype: type = np.float64) -> str:
        """In another precision."""
        return self("Cast", x, to=self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def write(path: Path, predictor: Predictor) -> None:
    """Write a network.

    Raises:
        UserError: onnx is not installed, the network predicts dipoles, or the file cannot be
            written.
    """
    data = model(predictor).SerializeToString()
    atomic_write(path, lambda stream: stream.write(data))


def model(predictor: Predictor) -> Any:
    """The ONNX model of a predictor; raises as `write`."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise MissingPackage(
            f"--onnx needs the package onnx: run {how_to_install('onnx')}"
        ) from None
    if predictor.config.readout == "dipole":
        raise UserError("--onnx is for energies and gaps; --pyg takes dipoles, too")
    g = _Graph(helper, numpy_helper)
    g.nodes.append(helper.make_node("Identity", [_prediction(g, predictor)], ["prediction"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes,
        "schnet",
        [
            value("numbers", TensorProto.INT64, ["A"]),
            value("positions", TensorProto.FLOAT, ["A", 3]),
            value("molecule", TensorProto.INT64, ["A"]),
        ],
        [value("prediction", TensorProto.DOUBLE, ["M"])],
        g.constants,
    )
    exported = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="schnet",
    )
    facts = {"target": predictor.target.name, "unit": "eV", "positions": "Angstrom"}
    helper.set_model_props(exported, facts)
    checker.check_model(exported)
    return exported


def _prediction(g: _Graph, predictor: Predictor) -> str:
    """[M] In eV."""
    config, net, references = predictor.config, predictor.model, predictor.references
    squares, neighbour = _neighbours(g, config.cutoff_bohr, config.neighbours)  # [A, k]
    cutoff2 = g.constant(config.cutoff_bohr**2)
    near = g("Less", squares, cutoff2)
    distance = g("Sqrt", g("Where", near, squares, g.constant(1.0)))
    angle = g("Mul", distance, g.constant(np.pi / config.cutoff_bohr))
    half = g.constant(0.5)
    fade = g("Mul", g("Add", g("Cos", angle), g.constant(1.0)), half)
    fade = g.axes(g("Mul", fade, g.cast(near, np.float32)), 2)  # [A, k, 1]
    centres = np.linspace(0.0, config.cutoff_bohr, config.gaussians, dtype=np.float32)
    width = config.cutoff_bohr / (config.gaussians - 1)
    off = g("Sub", g.axes(distance, 2), g.constant(centres))
    gaussians = g("Exp", g("Mul", g("Mul", off, off), g.constant(-0.5 / width**2)))
    x = g("Gather", g.constant(net.embedding), "numbers")
    for block in net.interactions:
        x = g("Add", x, _block(g, block, x, gaussians=gaussians, fade=fade, neighbour=neighbour))
    atomwise = g.linear(g.activated(g.linear(x, net.out_1)), net.out_2)  # [A, 1]
    return _readout(g, g("Squeeze", atomwise, g.constant([1], np.int64)), references, config=config)


def _neighbours(g: _Graph, cutoff: float, most: int) -> Sequence[str]:
    """[A, k] Squared distances to the nearest atoms of the same molecule in Bohr², and which."""
    positions = g("Mul", "positions", g.constant(1 / BOHR_TO_ANGSTROM))
    apart = g("Sub", g.axes(positions, 1), g.axes(positions, 0))
    squares = g.total(g("Mul", apart, apart), 2)
    atoms = g("Squeeze", g("Shape", "numbers"), g.constant([0], np.int64))
    zero, one = g.constant(0, np.int64), g.constant(1, np.int64)
    index = g("Range", zero, atoms, one)
    other = g("Not", g("Equal", g.axes(index, 1), g.axes(index, 0)))
    together = g("Equal", g.axes("molecule", 1), g.axes("molecule", 0))
    taken = g("And", other, together)
    squares = g("Where", taken, squares, g.constant(4.0 * cutoff**2))
    count = g("Min", g("Shape", "numbers"), g.constant([most], np.int64))
    return g("TopK", squares, count, outputs=2, axis=1, largest=0, sorted=1)


def _block(
    g: _Graph, block: InteractionBlock, x: str, gaussians: str, fade: str, neighbour: str
) -> str:
    filters = g.linear(g.activated(g.linear(gaussians, block.filter_in)), block.filter_out)
    heard = g("Gather", g.linear(x, block.before), neighbour)  # [A, k, F]
    summed = g.total(g("Mul", heard, g("Mul", filters, fade)), 1)
    return g.linear(g.activated(g.linear(summed, block.after)), block.mix)


def _readout(g: _Graph, atomwise: str, references: Any, config: Any) -> str:
    """[M] From the network's numbers of the atoms, in eV."""
    one = g.constant(1, np.int64)
    count = g("Add", g("ReduceMax", "molecule", keepdims=0), one)
    rows = g("Range", g.constant(0, np.int64), count, one)
    member = g.cast(g("Equal", g.axes(rows, 1), g.axes("molecule", 0)))  # [M, A]
    total = g("MatMul", member, g.cast(atomwise))
    if config.readout == "mean":
        total = g("Div", total, g.total(member, 1))
    values = np.zeros(HIGHEST + 1)
    values[list(references.elements)] = references.values
    of_atoms = g("MatMul", member, g("Gather", g.constant(values, np.float64), "numbers"))
    scaled = g("Mul", total, g.constant(references.scale, np.float64))
    whole = g("Add", g("Add", scaled, of_atoms), g.constant(references.constant, np.float64))
    return g("Mul", whole, g.constant(HARTREE_TO_EV, np.float64))
