"""Corrections of the packages: their own test values, their own parameters, differences."""

import importlib.util

import numpy as np
import pytest
from oracle import TWO_WATERS

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.xc.dispersion import correction as room
from pyscf_ipu.xc.dispersion.correction import correction
from pyscf_ipu.xc.suffixes.names import Dispersion
from pyscf_ipu.xc.suffixes.parameters import METHODS

dftd3 = pytest.importorskip("dftd3.interface")
dftd4 = pytest.importorskip("dftd4.interface")

MINDLESS = (
    np.array([1, 1, 6, 5, 1, 15, 8, 17, 13, 15, 5, 1, 9, 15, 1, 15]),
    np.array(
        [
            [2.79274810283778, 3.82998228828316, -2.79287054959216],
            [-1.43447454186833, 0.43418729987882, 5.53854345129809],
            [-3.26268343665218, -2.50644032426151, -1.56631149351046],
            [2.14548759959147, -0.88798018953965, -2.24592534506187],
            [-4.30233097423181, -3.93631518670031, -0.48930754109119],
            [0.06107643564880, -3.82467931731366, -2.22333344469482],
            [0.41168550401858, 0.58105573172764, 5.56854609916143],
            [4.41363836635653, 3.92515871809283, 2.57961724984000],
            [1.33707758998700, 1.40194471661647, 1.97530004949523],
            [3.08342709834868, 1.72520024666801, -4.42666116106828],
            [-3.02346932078505, 0.04438199934191, -0.27636197425010],
            [1.11508390868455, -0.97617412809198, 6.25462847718180],
            [0.61938955433011, 2.17903547389232, -6.21279842416963],
            [-2.67491681346835, 3.00175899761859, 1.05038813614845],
            [-4.13181080289514, -2.34226739863660, -3.44356159392859],
            [2.85007173009739, -2.64884892757600, 0.71010806424206],
        ]
    ),
)
"""Molecule 1 of MB16-43 in Bohr, with which both packages test themselves."""
MINDLESS_3C = (
    np.array([1, 9, 15, 13, 1, 1, 13, 5, 3, 15, 8, 1, 1, 5, 16, 1]),
    np.array(
        [
            [-2.14132037405479, -1.34402701877044, -2.32492500904728],
            [4.46671289205392, -2.04800110524830, 0.44422406067087],
            [-4.92212517643478, -1.73734240529793, 0.96890323821450],
            [-1.30966093045696, -0.52977363497805, 3.44453452239668],
            [-4.34208759006189, -4.30470270977329, 0.39887431726215],
            [0.61788392767516, 2.62484136683297, -3.28228926932647],
            [4.23562873444840, -1.68839322682951, -3.53824299552792],
            [2.23130060612446, 1.93579813100155, -1.80384647554323],
            [-2.32285463652832, 2.90603947535842, -1.39684847191937],
            [2.34557941578250, 2.86074312333371, 1.82827238641666],
            [-3.66431367659153, -0.42910188232667, -1.81957402856634],
            [-0.34927881505446, -1.75988134003940, 5.98017466326572],
            [0.29500802281217, -2.00226104143537, 0.53023447931897],
            [2.10449364205058, -0.56741404446633, 0.30975625014335],
            [-1.59355304432499, 3.69176153150419, 2.87878226787916],
            [4.34858700256050, 2.39171478113440, -2.61802993563738],
        ]
    ),
)
"""Another one of that set, with which dftd4 tests r2SCAN-3c."""

NAMES = {
    **{name: name.replace("-", "") for name in ("cam-b3lyp", "m06-2x")},
    "bp86": "bp",
    "wb97x-d3": "wb97x",
    "wb97x-d3bj": "wb97x",
    "wb97m-d3bj": "wb97m",
    "b97-3c": "b973c",
}
"""The packages' names of functionals, where they differ."""

FITTED = [(m, f) for m in METHODS for f in METHODS[m].parameters if METHODS[m].package]
COMPOSITE = [Dispersion("d3bj", "b97-3c"), Dispersion("d4", "r2scan-3c")]
CHARGED = Dispersion("d4", "pbe0")
ONE_OF_EACH = [Dispersion(m, next(iter(METHODS[m].parameters))) for m in METHODS]


def by_name(method, functional):
    """What a package gives with the parameters that it has under a name: energy, gradient."""
    name, more = NAMES.get(functional, functional), []
    if Dispersion(method, functional) in COMPOSITE:
        gcp = dftd3.GeometricCounterpoise(*MINDLESS, method=functional.replace("-", ""))
        more = [gcp.get_counterpoise(grad=True)]
    if method == "d4":
        # By name, r2SCAN-3c has the charges and the three-body term of D4 alone.
        model = dftd4.DispersionModel(*MINDLESS, **({"ga": 2.0, "gc": 1.0} if more else {}))
        values = {"s8": 0.0, "a1": 0.42, "a2": 5.65, "s9": 2.0} if more else {"method": name}
        found = [model.get_dispersion(dftd4.DampingParam(**values), grad=True), *more]
    else:
        kind = dftd3.RationalDampingParam if method == "d3bj" else dftd3.ZeroDampingParam
        damping = kind(method=name, atm=bool(more))
        found = [dftd3.DispersionModel(*MINDLESS).get_dispersion(damping, grad=True), *more]
    return sum(float(one["energy"]) for one in found), sum(one["gradient"] for one in found)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Dispersion("d3bj", "pbe0"), -0.029589132634178342),
        (Dispersion("d3zero", "b3lyp"), -0.022814172019166058),
    ],
)
def test_values_that_dftd3_tests_itself_with(kind, expected):
    assert correction(kind, *MINDLESS).energy == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("method", "functional"), FITTED)
def test_parameters_are_those_of_the_packages(method, functional):
    found = correction(Dispersion(method, functional), *MINDLESS)
    energy, gradient = by_name(method, functional)
    assert found.energy == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(found.forces, -gradient, rtol=1e-9, atol=1e-14)


def test_the_value_that_dftd4_tests_r2scan_3c_with():
    gcp = dftd3.GeometricCounterpoise(*MINDLESS_3C, method="r2scan3c").get_counterpoise(grad=False)
    found = correction(COMPOSITE[1], *MINDLESS_3C).energy - float(gcp["energy"])
    assert found == pytest.approx(-0.008016697276824889, abs=1e-8)


@pytest.mark.parametrize("apart", [1.4, 3.0, 6.0])
def test_counterpoise_of_two_hydrogens_from_the_stated_parameters(apart):
    """By the papers' formulas; radii, exponents and missing energy of H are the packages' own."""
    atoms = np.array([1, 1]), np.array([[0, 0, 0], [0, 0, apart]])
    radius = 2.1823 / 0.529177210903  # D3's R0 of two hydrogens
    bonds, basis = (kind.counterpoise.values for kind in COMPOSITE)
    expected = -bonds["qscal"] * np.exp(-bonds["rscal"] * apart / radius)
    assert counterpoise(COMPOSITE[0], *atoms) == pytest.approx(expected, rel=1e-5)
    x = 1.2 * basis["eta"] * apart
    overlap = np.exp(-x) * (1 + x + x**2 / 3)
    damped = basis["dmp_scal"] * (apart / radius) ** basis["dmp_exp"]
    decay = np.exp(-basis["alpha"] * apart ** basis["beta"])
    expected = 2 * 0.027 * basis["sigma"] * decay / np.sqrt(overlap) * damped / (1 + damped)
    assert counterpoise(COMPOSITE[1], *atoms) == pytest.approx(expected, rel=1e-5)


def counterpoise(kind, numbers, positions):
    """The energy without dispersion."""
    without = dict(kind.parameters.values)
    if kind.method == "d4":
        model = {name: without.pop(name) for name in ("ga", "gc", "wf")}
        theirs = dftd4.DispersionModel(numbers, positions, **model)
        energy = theirs.get_dispersion(dftd4.DampingParam(**without), grad=False)["energy"]
    else:
        theirs = dftd3.DispersionModel(numbers, positions)
        energy = theirs.get_dispersion(dftd3.RationalDampingParam(**without), grad=False)["energy"]
    return correction(kind, numbers, positions).energy - float(energy)


def test_an_element_without_counterpoise_is_refused():
    with pytest.raises(UsageError, match=r"r2scan-3c has no counterpoise .*\[8, 87\]"):
        correction(COMPOSITE[1], np.array([87, 8]), np.array([[0, 0, 0], [0, 0, 4.0]]))


def test_an_old_package_that_would_give_zero_is_refused(monkeypatch):
    monkeypatch.setattr(room, "version", lambda name: {"dftd3": "1.2.1"}[name])
    with pytest.raises(ImportError, match=r"b97-3c needs dftd3 1.7 or newer, and 1.2.1 is inst"):
        correction(COMPOSITE[0], *MINDLESS)
    assert correction(Dispersion("d3bj", "pbe"), *MINDLESS).energy < 0


@pytest.mark.parametrize("kind", [*ONE_OF_EACH, *COMPOSITE], ids=lambda kind: kind.definition[:60])
def test_forces_are_the_derivative(kind):
    numbers, positions = np.array([8, 1, 1, 6, 9]), np.array(MINDLESS[1][:5]) * 0.8
    forces = correction(kind, numbers, positions).forces
    step = 1e-4
    for atom, axis in ((0, 0), (2, 1), (4, 2)):
        moved = np.zeros((5, 3))
        moved[atom, axis] = step
        rise = correction(kind, numbers, positions + moved).energy
        rise -= correction(kind, numbers, positions - moved).energy
        assert -rise / (2 * step) == pytest.approx(forces[atom, axis], rel=1e-5, abs=1e-10)
    assert np.abs(forces).max() > 1e-5
    np.testing.assert_allclose(forces.sum(0), 0.0, atol=1e-10)


def test_the_published_interactions_of_two_waters():
    """Psi4's tests of functionals: Q-Chem's -0.0148666307 Hartree at wB97X-D3/6-31G, and Orca's at
    wB97X-D3BJ and wB97M-D3BJ in cc-pVDZ, -0.01295664452 and -0.01351626999.

    PySCF 2.14 gives without dispersion (libxc 399, 466 and 531; 99 x 590 points, no VV10):
    -0.0143392263, -0.0121050481, -0.0125182033.
    """
    numbers, positions = TWO_WATERS.numbers, TWO_WATERS.positions
    for kind, whole, rest in (
        (Dispersion("d3zero", "wb97x-d3"), -0.0148666307, -0.0143392263),
        (Dispersion("d3bj", "wb97x-d3bj"), -0.01295664452, -0.0121050481),
        (Dispersion("d3bj", "wb97m-d3bj"), -0.01351626999, -0.0125182033),
    ):
        parts = [
            correction(kind, numbers[part], positions[part]).energy
            for part in (slice(None), slice(3), slice(3, None))
        ]
        assert parts[0] - parts[1] - parts[2] == pytest.approx(whole - rest, abs=1e-6)


def test_the_values_that_the_packages_print_for_water():
    """In their READMEs, for TPSS; dftd3's is of an earlier version, 6e-7 of it away."""
    numbers = np.array([8, 1, 1])
    positions = np.array([[0, 0, -0.73578586109551], [1.44183152868459, 0, 0.36789293054775]])
    positions = np.vstack([positions, positions[1] * [-1, 1, 1]])
    for kind, printed, rel in (("d4", -0.0002667885779, 1e-9), ("d3bj", -0.0004204244108, 1e-6)):
        found = correction(Dispersion(kind, "tpss"), numbers, positions).energy
        assert found == pytest.approx(printed, rel=rel)


def test_d4_depends_on_the_charge():
    neutral, cation = (correction(CHARGED, *MINDLESS, charge).energy for charge in (0, 2))
    assert abs(neutral - cation) > 1e-4
    expected = dftd4.DispersionModel(*MINDLESS, charge=2.0).get_dispersion(
        dftd4.DampingParam(method="pbe0"), grad=False
    )
    assert cation == pytest.approx(float(expected["energy"]), rel=1e-12)


@pytest.mark.parametrize("kind", [*ONE_OF_EACH, *COMPOSITE, None], ids=str)
def test_an_atom_has_none(kind):
    """So free atoms have none."""
    found = correction(kind, np.array([6]), np.zeros((1, 3)))
    assert found.energy == 0
    assert np.array_equal(found.forces, np.zeros((1, 3)))


def test_an_atom_has_none_in_the_packages():
    atom = np.array([6]), np.zeros((1, 3))
    for package, damping in (
        (dftd3, dftd3.RationalDampingParam(method="pbe")),
        (dftd4, dftd4.DampingParam(method="pbe")),
    ):
        assert package.DispersionModel(*atom).get_dispersion(damping, grad=False)["energy"] == 0


@pytest.mark.parametrize("package", ["dftd3", "dftd4"])
def test_a_missing_package_says_what_to_install(package, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(room, "find_spec", lambda n: None if n == package else real(n))
    kind = Dispersion("d4" if package == "dftd4" else "d3bj", "pbe")
    with pytest.raises(ImportError, match=rf"need the package {package}: run pip install \"dftd3"):
        correction(kind, *MINDLESS)
    assert correction(ONE_OF_EACH[-1], np.array([1, 1]), np.eye(3)[:2]).energy < 0
