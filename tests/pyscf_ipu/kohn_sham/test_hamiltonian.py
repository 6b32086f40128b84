"""Everything that is computed before the SCF, against PySCF, at a density that is not converged.

Each case compiles one program: overlap, kinetic, nuclear attraction, dipole, supermatrix, and the
Fock matrix with its energy at PySCF's starting density.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import METHYL_CHLORIDE, WATER, mole_of
from pyscf import dft, scf

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.kohn_sham.hamiltonian import hamiltonian
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.two_words import Pair, to_float64
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

OMEGA = 0.3


@dataclass(frozen=True)
class Bounds:
    """Largest absolute errors allowed; integrals and Fock elements, supermatrix, energies."""

    integral: float
    repulsion: float
    energy: float


DOUBLE = {"precision": "float64"}
EXACT = Bounds(1e-11, 1e-12, 1e-9)
SINGLE = Bounds(3e-5, 3e-6, 3e-4)


@dataclass
class Case:
    """One compiled hamiltonian beside the same molecule in PySCF (in the centred frame)."""

    settings: Settings
    bounds: Bounds
    mole: Any
    density: np.ndarray
    order: np.ndarray
    n_slot_ao: int
    exchange: Interaction
    found: dict[str, Any]

    def matrix(self, packed):
        """A packed quantity [..., P] over slots as [..., N, N] in PySCF's order."""
        i, j = np.indices((self.n_slot_ao, self.n_slot_ao))
        high, low = np.maximum(i, j), np.minimum(i, j)
        square = np.asarray(packed)[..., high * (high + 1) // 2 + low]
        return square[..., self.order[:, None], self.order[None]]

    def pair_rows(self):
        """Row of the packed supermatrix for every AO pair of PySCF's order: [N, N]."""
        high = np.maximum(self.order[:, None], self.order)
        low = np.minimum(self.order[:, None], self.order)
        return high * (high + 1) // 2 + low


def host(x):
    return np.asarray(to_float64(x) if isinstance(x, Pair) else x, np.float64)


def supermatrix(repulsion, n_pairs, dtype):
    """G [P, P], column by column."""
    return jax.lax.map(lambda d: repulsion(d)[0], jnp.eye(n_pairs, dtype=dtype)).T


def build(mol, bounds, long_range=0.0, **changes):
    settings = Settings(**{"grid_level": 0, **changes})
    mol = Molecule(mol.numbers, mol.positions - mol.positions.mean(0), mol.charge)
    shape = shape_of(mol.numbers, settings.basis, settings.cart, 0)
    mole = mole_of(mol, settings.basis, settings.cart)
    density = scf.RHF(mole).get_init_guess()
    order = shapes_conformer.ao_order(mol, shape, settings)
    dtype = settings.numerics.scf_dtype
    slots = np.zeros((shape.n_ao, shape.n_ao), dtype)
    slots[np.ix_(order, order)] = density

    def run(class_tables, conformer, density):
        xc = dataclasses.replace(
            functional(settings.xc), long_range_exchange=long_range, omega=OMEGA
        )
        problem = hamiltonian(gather_atoms(tile_plan(shape), class_tables, conformer, dtype), xc)
        fock, terms = problem.fock(density)
        one = problem.one._replace(overlap=problem.overlap)
        g = supermatrix(problem.repulsion, shape.n_pairs, fock.dtype)
        return {
            **one._asdict(), "g": g, "fock": fock, "terms": terms._asdict(),
            "energy": terms.total(), "moment": problem.dipole(density),
            "padded": problem.padded,
        }  # fmt: skip

    with settings.numerics.scope():
        arrays = (
            tables.shape_tables(shape, settings),
            shapes_conformer.conformer(mol, shape, settings),
        )
        found = jax.device_get(jax.jit(run)(*arrays, slots))
    exchange = Interaction(functional(settings.xc).exact_exchange, long_range, OMEGA)
    return Case(settings, bounds, mole, density, order, shape.n_ao, exchange, found)


@pytest.fixture(
    scope="module",
    params=[
        # Its program has all that range separation leaves out, in all other cases too.
        pytest.param(
            (METHYL_CHLORIDE, EXACT, {"precision": "float64"}), id="float64", marks=pytest.mark.long
        ),
        pytest.param((METHYL_CHLORIDE, SINGLE, {"precision": "float32"}), id="float32"),
        pytest.param(
            (METHYL_CHLORIDE, EXACT, {"precision": "float64", "long_range": 0.6}),
            id="range separation",
        ),
        pytest.param(
            (METHYL_CHLORIDE, SINGLE, {"precision": "float32", "long_range": -0.2}),
            id="screened exchange",
            marks=pytest.mark.long,
        ),
        pytest.param(
            (WATER, EXACT, {"precision": "float64", "basis": "cc-pvdz", "xc": "lda"}),
            id="general contraction",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            (
                WATER,
                EXACT,
                {"basis": "6-31g*", "cart": True, "xc": "hf", "long_range": -0.2} | DOUBLE,
            ),
            id="cartesian d, screened",
            marks=pytest.mark.slow,
        ),
    ],
)
def case(request):
    mol, bounds, changes = request.param
    return build(mol, bounds, **changes)


@pytest.mark.parametrize(
    ("name", "integral"),
    [("kinetic", "int1e_kin"), ("nuclear", "int1e_nuc"), ("dipole", "int1e_r")],
)
def test_one_electron_integrals(case, name, integral):
    found = case.matrix(host(case.found[name]))
    assert np.max(np.abs(found - case.mole.intor(integral))) < case.bounds.integral


def test_overlap_has_ones_for_padding(case):
    found = host(case.found["overlap"])
    inside = found[np.ix_(case.order, case.order)]
    assert np.max(np.abs(inside - case.mole.intor("int1e_ovlp"))) < case.bounds.integral / 10
    rest = np.setdiff1d(np.arange(case.n_slot_ao), case.order)
    assert len(rest) > 0
    np.testing.assert_array_equal(rest, np.flatnonzero(case.found["padded"]))
    np.testing.assert_array_equal(found[rest][:, rest], np.eye(len(rest)))
    assert not found[rest][:, case.order].any()


def test_supermatrix_is_coulomb_minus_exchange(case):
    eri = case.mole.intor("int2e")
    own = case.exchange.full * eri
    with case.mole.with_range_coulomb(OMEGA):
        own += case.exchange.long_range * case.mole.intor("int2e")
    expected = eri - 0.25 * (np.einsum("ikjl->ijkl", own) + np.einsum("iljk->ijkl", own))
    g = host(case.found["g"])
    np.testing.assert_allclose(g, g.T, rtol=0, atol=case.bounds.repulsion)
    rows = case.pair_rows()
    found = g[rows[:, :, None, None], rows[None, None]]
    error = found - expected
    assert np.max(np.abs(error)) < case.bounds.repulsion
    # Integrals that err to one side would add up in a large molecule.
    assert abs(np.mean(error)) < case.bounds.repulsion / 100


def test_empty_slots_repel_nothing(case):
    """Rows and columns of pairs with a padded AO are zero."""
    g = host(case.found["g"])
    i, j = np.tril_indices(case.n_slot_ao)
    padded = case.found["padded"][i] | case.found["padded"][j]
    assert not g[padded].any()
    assert not g[:, padded].any()


def semilocal(case):
    """PySCF's exchange-correlation energy and matrix without exact exchange."""
    if case.settings.xc == "hf":
        return 0.0, np.zeros_like(case.density)
    field = dft.RKS(case.mole, xc=functional(case.settings.xc).pyscf_name)
    field.grids.level = 0
    field.grids.build()
    _, energy, matrix = field._numint.nr_rks(case.mole, field.grids, field.xc, case.density)
    return energy, matrix


def test_fock_matrix_and_energy_terms(case):
    hcore = scf.hf.get_hcore(case.mole)
    coulomb, exchange = scf.hf.get_jk(case.mole, case.density)
    xc_energy, xc_matrix = semilocal(case)
    _, far = scf.hf.RHF(case.mole).get_jk(case.mole, case.density, omega=OMEGA)
    own = case.exchange.full * exchange + case.exchange.long_range * far
    two_electron = coulomb - 0.5 * own
    fock = host(case.found["fock"])[np.ix_(case.order, case.order)]
    assert np.max(np.abs(fock - (hcore + two_electron + xc_matrix))) < 10 * case.bounds.integral

    expected = {
        "kinetic": np.vdot(case.density, case.mole.intor("int1e_kin")),
        "nuclear_attraction": np.vdot(case.density, case.mole.intor("int1e_nuc")),
        "electron_repulsion": 0.5 * np.vdot(case.density, two_electron),
        "exchange_correlation": xc_energy,
        "nuclear_repulsion": case.mole.energy_nuc(),
    }
    found = {name: float(host(term)) for name, term in case.found["terms"].items()}
    for name, value in expected.items():
        assert abs(found[name] - value) < case.bounds.energy, name
    total = float(case.found["energy"].hi) + float(case.found["energy"].lo)
    assert abs(total - sum(expected.values())) < 2 * case.bounds.energy


def test_padded_orbitals_lie_far_above(case):
    fock = host(case.found["fock"])
    rest = np.flatnonzero(case.found["padded"])
    assert np.all(np.diag(fock)[rest] > 10.0)
    assert not (fock - np.diag(np.diag(fock)))[rest].any()


def test_electronic_dipole(case):
    expected = -np.einsum("xij,ji->x", case.mole.intor("int1e_r"), case.density)
    np.testing.assert_allclose(host(case.found["moment"]), expected, atol=case.bounds.energy)
