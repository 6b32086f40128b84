"""The Hessian of both spins, and that of opposite rotations of closed shells, against PySCF's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import QUICK
from pyscf.scf.stability import _gen_hop_rhf_external
from pyscf.soscf.newton_ah import gen_g_hop_uhf

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.commands.report import mole_of
from pyscf_ipu.kohn_sham.fitted import fitted
from pyscf_ipu.kohn_sham.hamiltonian import guess_density, hamiltonian
from pyscf_ipu.kohn_sham.spin_stability import stationary_field, triplet_response
from pyscf_ipu.kohn_sham.xc_of_spins import response_of_spins_vertex
from pyscf_ipu.machines.machine import HOST
from pyscf_ipu.scf.lowest.descent import density_of_spins, rotations
from pyscf_ipu.scf.lowest.rotation import RotationField
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

LONG = pytest.mark.long
OXYGEN = Molecule([8, 8], [[0, 0, -1.14], [0, 0, 1.14]], multiplicity=3)
HYDROXYL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.83]], multiplicity=2)
FLUORIDE = Molecule([9, 1], [[0, 0, 0], [0, 0, 1.75]])
LEVELS = [
    ("b3lyp", "exact"),
    ("pbe", "ri"),
    pytest.param("hf", "exact", marks=LONG),
    pytest.param("hf", "ri", marks=LONG),
    pytest.param("lda", "ri", marks=LONG),
    pytest.param("pbe", "exact", marks=LONG),
    pytest.param("tpss", "exact", marks=LONG),
    pytest.param("r2scan", "exact", marks=LONG),
    pytest.param("wb97x", "exact", marks=LONG),
    pytest.param("wb97x", "ri", marks=LONG),
]


def level(xc, jk):
    return Settings(xc=xc, jk=jk, precision="float64", grid_level=0)


@functools.cache
def field_of(mol, xc, jk):
    """PySCF's converged state, unrestricted where electrons are unpaired."""
    settings = level(xc, jk)
    field = settings.pyscf_method(mole_of(mol, settings), unrestricted=mol.multiplicity > 1)
    field.conv_tol = 1e-12
    field.kernel()
    if not field.converged:  # hydroxyl's unpaired electron may turn about the axis
        field = field.newton()
        field.kernel(field.mo_coeff, field.mo_occ)
    assert field.converged
    return field


def eigenvalues(mol, settings, field, of, open_shell=True):
    """Of our Hessian at PySCF's orbitals; `of` (problem, orbitals) gives field and response."""
    shape = shape_of(mol.numbers, settings.basis, settings.cart, settings.grid, pad=False)
    order = conformer.ao_order(mol, shape, settings)
    machine = fitted(HOST, shape, settings, reference=guess_density)

    def hessian(of_shape, data, orbitals):
        atoms = gather_atoms(tile_plan(shape), of_shape, data, settings.numerics.scf_dtype)
        problem = hamiltonian(atoms, functional(settings.xc), machine, open_shell=open_shell)
        made, response = of(problem, orbitals)
        units = jnp.eye(orbitals.size, dtype=orbitals.dtype).reshape(-1, *orbitals.shape)
        return jax.lax.map(functools.partial(made.hessian, response), units), made.allowed

    with settings.numerics.scope():
        data = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
        orbitals = np.zeros_like(field.mo_coeff)
        orbitals[..., order, :] = field.mo_coeff
        images, allowed = jax.jit(hessian, compiler_options=QUICK)(*data, orbitals)
    allowed = np.ravel(allowed)
    inside = np.reshape(images, (len(images), -1))[allowed][:, allowed]
    np.testing.assert_allclose(inside, inside.T, atol=1e-6)
    return np.linalg.eigvalsh(inside)


def oracle(product, size):
    """The eigenvalues of a matrix that is known by its products with vectors."""
    return np.linalg.eigvalsh(np.stack([product(unit) for unit in np.eye(size)]))


@pytest.mark.parametrize("mol", [HYDROXYL, pytest.param(OXYGEN, marks=LONG)])
@pytest.mark.parametrize(("xc", "jk"), LEVELS)
def test_the_hessian_of_both_spins_is_pyscfs(mol, xc, jk):
    settings, field = level(xc, jk), field_of(mol, xc, jk)

    def of(problem, orbitals):
        counts = jnp.asarray(field.nelec, jnp.int32)
        occupied = jnp.arange(orbitals.shape[-1], dtype=jnp.int32) < counts[:, None]
        allowed = jax.vmap(lambda c, o: rotations(c, o, problem.padded))(orbitals, occupied)
        nothing, levels = jnp.zeros_like(orbitals), jnp.asarray(field.mo_energy)
        made = RotationField(orbitals, levels, nothing, allowed=allowed, stationary=jnp.bool_(True))
        return made, problem.response(density_of_spins(orbitals, counts))

    found = eigenvalues(mol, settings, field, of=of)
    _, product, diagonal = gen_g_hop_uhf(field, field.mo_coeff, field.mo_occ)
    np.testing.assert_allclose(found, oracle(product, len(diagonal)), atol=1e-5)


@pytest.mark.parametrize(("xc", "jk"), LEVELS)
def test_the_hessian_of_opposite_rotations_is_pyscfs(xc, jk):
    settings, field = level(xc, jk), field_of(FLUORIDE, xc, jk)
    n_occupied = jnp.int32(field.mol.nelectron // 2)

    def of(problem, orbitals):
        levels = jnp.asarray(field.mo_energy)
        made = stationary_field(problem, orbitals, levels, n_occupied=n_occupied)
        density = density_of_spins(orbitals, n_occupied)
        return made, triplet_response(problem, density)

    found = eigenvalues(FLUORIDE, settings, field, of=of)
    _, _, product, diagonal = _gen_hop_rhf_external(field, with_symmetry=False)
    np.testing.assert_allclose(found, oracle(product, len(diagonal)), atol=1e-5)


@pytest.mark.parametrize("xc", ["b3lyp", pytest.param("r2scan", marks=LONG)])
def test_the_hessian_of_closed_shells_is_that_of_equal_rotations(xc):
    settings, field = level(xc, "exact"), field_of(FLUORIDE, xc, "exact")
    n_occupied = jnp.int32(field.mol.nelectron // 2)

    def of(problem, orbitals, open_shell):
        levels, density = jnp.asarray(field.mo_energy), density_of_spins(orbitals, n_occupied)
        made = stationary_field(problem, orbitals, levels, n_occupied=n_occupied)
        if not open_shell:
            return made, problem.response(density)
        of_spins = problem.response(jnp.stack([density, density]))
        return made, lambda change: of_spins(jnp.stack([change, change]))[0]

    both, closed = (
        eigenvalues(
            FLUORIDE, settings, field, of=functools.partial(of, open_shell=one), open_shell=one
        )
        for one in (True, False)
    )
    np.testing.assert_allclose(both, closed, atol=1e-8)


def moments_of(xc, rho):
    """Of both spins, with slopes and kinetic energy densities as molecules have them."""
    rng = np.random.default_rng(3)
    slope = rng.normal(size=(2, 3, rho.shape[1])) * rho[:, None] ** (4 / 3)
    tau = (slope**2).sum(1) / np.maximum(8 * rho, 1e-30) + rho ** (5 / 3) * rng.uniform(0.1, 6)
    rows = np.concatenate([rho[:, None], slope, tau[:, None]], axis=1)
    change = rows * rng.normal(size=rows.shape)
    planes = {"lda": 1, "gga": 4, "mgga": 5}[xc.kind]
    return rows[:, :planes].astype(np.float32), change[:, :planes].astype(np.float32)


def changes(name, rho, dtype):
    """The change of the factors along that of the moments."""
    xc = functional(name)
    vertex = functools.partial(response_of_spins_vertex, xc)
    arrays = (*moments_of(xc, rho), np.ones(rho.shape[1]))
    with jax.enable_x64(dtype == np.float64):
        found = jax.jit(vertex, compiler_options=QUICK)(*(x.astype(dtype) for x in arrays))
        return np.asarray(found, np.float64)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "pbe" else LONG)
        for name in FUNCTIONALS
        if name != "hf"
    ],
)
def test_changes_in_float32(name):
    """They are those of float64, and finite where one or both spins are thin or absent."""
    rng = np.random.default_rng(4)
    rho = 10 ** rng.uniform(-4, 2, (2, 720)) * 0.5
    single, double = (changes(name, rho, dtype) for dtype in (np.float32, np.float64))
    size = np.abs(double).max(axis=(0, 1)) + 1e-3 * rho.sum(0) ** (1 / 3)
    assert np.max(np.abs(single - double) / size) < 1e-2
    thin = np.where(rng.random((2, 720)) < 0.1, 0.0, 10 ** rng.uniform(-20, -4, (2, 720)))
    assert np.isfinite(changes(name, thin, np.float32)).all()
