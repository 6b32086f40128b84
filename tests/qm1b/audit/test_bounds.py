"""The bounds of an audit that the project promises."""

from pyscf_ipu import Settings
from qm1b.audit.bounds import Bounds, default_bounds
from qm1b.settings import PRESETS


def test_default_bounds_are_those_of_the_readme():
    assert default_bounds(PRESETS["qm1b"]) == Bounds(
        energy_mae_mev=1.0, energy_max_mev=5.0, gap_mae_mev=0.1, dipole_max_e_bohr=1e-3,
        charge_max_e=1e-3, homo_mae_mev=1.0, homo_max_mev=5.0, lumo_mae_mev=1.0, lumo_max_mev=5.0,
        force_max_mev_angstrom=5.0,
        higher_percent=0.5, lower_percent=0.5, not_compared_percent=5.0,
    )  # fmt: skip
    assert (
        default_bounds(
            Settings(basis="6-31g*", xc="b3lyp", grid_level=0, precision="float32")
        ).energy_mae_mev
        == 3.0
    )
    assert (
        default_bounds(
            Settings(basis="sto-3g", xc="b3lyp", grid_level=0, precision="mixed")
        ).energy_mae_mev
        == 0.01
    )
