"""Density fitting on a simulated IPU: the host fits in float64, and B is streamed in."""

import pytest

from pyscf_ipu import Molecule, Settings, rks
from pyscf_ipu.ipu.engine.command import profile_rks

MOL = Molecule.from_symbols([*"OHH"], [[0, 0, 0], [0, 0, 1.8], [0, 1.75, -0.45]], unit="bohr")


@pytest.mark.long
def test_the_price_of_a_fitted_scf(solver_of):
    level = {"xc": "hf", "grid_level": 0, "jk": "ri"}
    profile = profile_rks(MOL, Settings(**level))
    # The fit is made on the host either way; eigenvectors and sums are not.
    assert profile.energy_hartree == pytest.approx(
        rks(MOL, solver=solver_of(**level)).energy, abs=2e-5
    )
    assert profile.unknown_ops == {}
    exact = profile_rks(MOL, Settings(**level | {"jk": "exact"}))
    first, other = (p.program[0] for p in (profile, exact))
    assert first.name == other.name == "stream in"
    # 28 AO pairs or more, for a hundred auxiliary functions or more.
    assert first.moved_bytes - other.moved_bytes > 4 * 28 * 100
    assert 0.3 < profile.cycles.low / exact.cycles.low < 3.0
