"""Files of molecules for the tests of sources, and what their rows are."""

import pyarrow as pa

from schnet.samples.samples import Samples

WATER = """3
Properties=species:S:1:pos:R:3 smiles="O" {}
O 0.0 0.0 0.1
H 0.0 0.76 -0.47
H 0.0 -0.76 -0.47
"""


def whole(source):
    return Samples.concatenate(list(source.parts()))


def qm1b_table(**changes):
    """QM1B's own columns and Arrow types: water, water, methane."""
    numbers = [[8, 1, 1], [8, 1, 1], [6, 1, 1, 1, 1]]
    positions = [[0.5 * i for i in range(3 * len(z))] for z in numbers]
    columns = {
        "smile": pa.array(["O", "O", "C"]),
        "atoms": pa.array(["OHH", "OHH", "CHHHH"]),
        "z": pa.array(numbers, pa.list_(pa.uint8())),
        "energy": pa.array([-2050.0, -2049.0, -1090.0], pa.float64()),
        "homo": pa.array([-10.0, -9.5, -12.0], pa.float32()),
        "lumo": pa.array([4.0, 4.5, 6.0], pa.float32()),
        "N": pa.array([7, 7, 9], pa.uint8()),
        "std": pa.array([0.001, 0.01, 0.0], pa.float32()),
        "y": pa.array([14.0, 14.0, 18.0], pa.float64()),
        "pos": pa.array(positions, pa.list_(pa.float32())),
    }
    return pa.table({k: v for k, v in (columns | changes).items() if v is not None})
