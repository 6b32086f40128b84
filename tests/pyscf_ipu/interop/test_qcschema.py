"""QCSchema's inputs, in every form, and what comes back: `rks`'s numbers, or why there are none."""

import numpy as np
import pytest
from qcelemental.models import v1

import pyscf_ipu as pi
from pyscf_ipu.interop.qcschema import compute, compute_many

LEVEL = {"precision": "float64", "grid_level": 0}
WATER = {"symbols": ["O", "H", "H"], "geometry": [0, 0, 0, 0, 1.43, 1.1, 0, -1.43, 1.1]}
HYDROXYL = {"symbols": ["O", "H"], "geometry": [0, 0, 0, 0, 0, 1.83], "molecular_multiplicity": 2}


def asks(driver="energy", molecule=WATER, method="pbe", **fields):
    """An input of version 1."""
    model = {"method": method, "basis": "sto-3g"}
    return {"molecule": molecule, "driver": driver, "model": model, "keywords": LEVEL} | fields


def molecule(given):
    numbers = [{"O": 8, "H": 1}[symbol] for symbol in given["symbols"]]
    multiplicity = given.get("molecular_multiplicity", 1)
    return pi.Molecule(numbers, np.reshape(given["geometry"], (-1, 3)), multiplicity=multiplicity)


def of_version_2(given):
    names = ("driver", "model", "keywords")
    return {"molecule": given["molecule"], "specification": {k: given[k] for k in names}}


def test_every_form_has_its_own_form_of_answer():
    given = asks("gradient")
    model = v1.AtomicInput(**given)
    as_dict, in_two = compute(given), compute(of_version_2(given))
    as_model, of_two = compute(model), compute(model.convert_v(2))
    assert isinstance(as_dict, dict)
    assert isinstance(in_two, dict)
    assert isinstance(as_model, v1.AtomicResult)
    assert of_two.schema_version == 2
    assert as_dict["driver"] == "gradient"
    assert in_two["input_data"]["specification"]["driver"] == "gradient"
    ours = pi.rks(molecule(WATER), xc="pbe", forces=True, **LEVEL)
    for gradient in (
        as_dict["return_result"],
        in_two["return_result"],
        as_model.return_result,
        of_two.properties.return_gradient,
    ):
        np.testing.assert_array_equal(np.reshape(gradient, (-1, 3)), -ours.forces)
    assert as_model.properties.return_energy == ours.energy
    assert as_model.provenance.creator == "pyscf-ipu"


def test_many_inputs_share_calls_and_one_that_fails_costs_no_other():
    inputs = [
        asks(),
        asks(molecule=HYDROXYL),
        asks(method="no-such"),
        asks(keywords={"scf_type": "df"}),
        asks(model={"method": "pbe"}),
        asks(driver="dipole"),
        {},
        asks(keywords=LEVEL | {"max_cycles": 2}),
        asks(molecule=WATER | {"molecular_charge": 0.5}),
        asks(molecule=WATER | {"real": [True, True, False]}),
        asks(molecule={"symbols": ["Fm"], "geometry": [0, 0, 0]}),
        asks("gradient", keywords={"accuracy": "energy"}),
        asks(molecule={"symbols": ["H", "H"], "geometry": [0] * 6}, id="torn"),
    ]
    water, radical, *failed = compute_many(inputs)
    assert water["return_result"] == pi.rks(molecule(WATER), xc="pbe", **LEVEL).energy
    ours = pi.uks(molecule(HYDROXYL), xc="pbe", **LEVEL)
    assert radical["return_result"] == pytest.approx(ours.energy, abs=1e-9)
    assert (radical["properties"]["calcinfo_nalpha"], radical["success"]) == (5, True)
    kinds = [one["error"]["error_type"] for one in failed]
    assert kinds == ["input_error"] * 5 + ["convergence_error"] + ["input_error"] * 5
    assert failed[-1]["id"] == "torn"
    says = [one["error"]["error_message"] for one in failed]
    for message, word in zip(
        says,
        (
            "no-such",
            "scf_type",
            "basis",
            "driver",
            "molecule",
            "max_cycles",
            "charge",
            "ghost",
            "Fm",
            "accuracy",
            "close",
        ),
        strict=True,
    ):
        assert word in message


def test_neither_a_dict_nor_a_model_is_a_mistake():
    with pytest.raises(TypeError, match="not a list"):
        compute([asks()])


def test_no_inputs_have_no_answers():
    assert compute_many([]) == []


def test_a_hessian_is_that_of_pyscf():
    from pyscf import gto

    given = asks("hessian", {"symbols": ["H", "H"], "geometry": [0, 0, 0.1, 0.2, 0, 1.5]}, "hf")
    hessian = compute(given)["return_result"]
    mole = gto.M(atom="H 0 0 .1; H .2 0 1.5", unit="bohr", basis="sto-3g", verbose=0)
    theirs = mole.RHF().run(conv_tol=1e-13).Hessian().kernel().transpose(0, 2, 1, 3).reshape(6, 6)
    np.testing.assert_allclose(np.reshape(hessian, (6, 6)), theirs, rtol=0, atol=3e-5)


def test_properties_are_those_of_the_result():
    values = compute(asks("properties", HYDROXYL))["return_result"]
    ours = pi.uks(molecule(HYDROXYL), xc="pbe", orbitals=True, **LEVEL)
    np.testing.assert_allclose(values["mulliken_charges"], ours.mulliken_charges, atol=1e-7)
    np.testing.assert_allclose(values["mayer_indices"], ours.bond_orders, atol=1e-7)
    np.testing.assert_allclose(values["dipole"], ours.dipole, atol=1e-7)
    assert values["s_squared"] == pytest.approx(ours.s_squared)
