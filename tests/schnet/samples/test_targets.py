"""Targets: conversions against ASE and SciPy, and units that are given and never guessed."""

import math

import numpy as np
import pytest
import scipy.constants as si
from ase import units as ase

from schnet.errors import UserError
from schnet.samples.targets import TARGETS, UNITS, target_of
from schnet.sources.lookup import lookup

EH = si.physical_constants["Hartree energy"][0]


def found(target, comment, key=None, unit=None):
    where = lookup(target_of(target), comment, key, unit, "a.extxyz")
    return where.value(comment, "a.extxyz, frame 1")


def test_conversions():
    energy, dipole = UNITS["energy"], UNITS["dipole"]
    assert energy["ev"] == pytest.approx(EH / si.e, rel=1e-9)
    assert energy["mev"] == pytest.approx(1e3 * EH / si.e, rel=1e-9)
    assert energy["kcal_mol"] == pytest.approx(EH * si.N_A / 4184, rel=1e-9)
    assert energy["kj_mol"] == pytest.approx(EH * si.N_A / 1000, rel=1e-9)
    # ASE's unit of a dipole moment is e*Angstrom; its constants are of 2014.
    assert dipole["debye"] == pytest.approx(ase.Bohr / ase.Debye, rel=1e-7)
    assert dipole["e_angstrom"] == pytest.approx(ase.Bohr, rel=1e-8)
    assert TARGETS["gap"].display_per_atomic == energy["mev"]
    assert TARGETS["dipole_norm"].display_per_atomic == pytest.approx(1e3 * dipole["debye"])


@pytest.mark.parametrize(
    ("target", "key", "atomic"),
    [
        ("gap", "gap_au", 1.0),
        ("gap", "gap_hartree", 1.0),
        ("gap", "gap_ev", EH / si.e),
        ("gap", "gap_eV", EH / si.e),
        ("gap", "GAP_meV", 1e3 * EH / si.e),
        ("energy", "U0_au", 1.0),
        ("energy", "energy_kcal_mol", EH * si.N_A / 4184),
        ("homo", "homo_Ha", 1.0),
        ("lumo", "lumo_kJ_mol", EH * si.N_A / 1000),
        ("dipole_norm", "dipole_debye", ase.Bohr / ase.Debye),
        ("dipole_norm", "dipole_norm_debye", ase.Bohr / ase.Debye),
        ("dipole_norm", "mu_e_angstrom", ase.Bohr),
    ],
)
def test_the_unit_is_taken_from_the_key(target, key, atomic):
    comment = {"smiles": "C", "other": "x", key: repr(0.25 * atomic)}
    assert found(target, comment) == pytest.approx(0.25, rel=1e-7)
    other = "mdebye" if target == "dipole_norm" else "kcal_mol" if "ev" in key.lower() else "ev"
    if key == "energy_kcal_mol":
        other = "kj_mol"
    with pytest.raises(UserError, match=f"--unit is '{other}', but the key '{key}' says"):
        found(target, comment, unit=other)


def test_a_bare_key_asks_for_the_unit():
    comment = {"gap": "2.0"}
    with pytest.raises(UserError) as caught:
        found("gap", comment)
    for word in ("a.extxyz", "'gap'", "--unit", "hartree", "ev", "kcal_mol"):
        assert word in str(caught.value)
    assert found("gap", comment, unit="hartree") == 2.0
    assert found("gap", comment, unit="kcal/mol") == pytest.approx(2 / 627.5094740631)
    with pytest.raises(UserError, match="not a unit of gap: use one of au, hartree"):
        found("gap", comment, unit="debye")
    with pytest.raises(UserError, match="'energy' does not say its unit"):
        found("energy", {"energy": "-40.0"})  # ASE's would be eV, others' is not


def test_a_key_by_name():
    comment = {"gap_au": "0.3", "delta": "1.5", "delta_ev": "27.211386245988"}
    assert found("gap", comment, key="delta", unit="au") == 1.5
    assert found("gap", comment, key="delta_ev") == pytest.approx(1.0)
    assert found("gap", comment, key="delta_ev", unit="eV") == pytest.approx(1.0)
    for key, unit, message in [
        ("delta", None, "'delta' does not say its unit"),
        ("delta_ev", "au", "'delta_ev' says ev"),
        ("missing", "au", "no key 'missing'; its first frame has gap_au, delta, delta_ev"),
    ]:
        with pytest.raises(UserError, match=message):
            found("gap", comment, key, unit)


def test_several_keys():
    both = {"gap_ev": "27.211386245988", "gap_au": "1.0", "gap": "5"}
    assert found("gap", both) == 1.0
    assert found("gap", both, unit="ev") == pytest.approx(1.0)
    with pytest.raises(UserError, match="energy_au, U0_au: say which is meant with --key"):
        found("energy", {"U0_au": "-1.0", "energy_au": "-1.1"})


def test_the_gap_from_its_orbitals():
    assert found("gap", {"homo_hartree": "-0.25", "lumo_ev": "2.7211386245988"}) == 0.35
    assert found("gap", {"homo": "-0.25", "lumo": "0.1"}, unit="au") == 0.35
    with pytest.raises(UserError, match=r"no gap \(looked for gap_UNIT or gap.*has homo_au"):
        found("gap", {"homo_au": "-0.25"})


def test_vectors():
    assert found("dipole_norm", {"dipole_e_bohr": "1.0 -2.0 2.0"}) == 3.0
    assert found("dipole_norm", {"dipole": "3 0 4"}, unit="debye") == pytest.approx(5 / 2.541746473)
    for target, text in [("gap", "1 2 3"), ("gap", "wide"), ("dipole_norm", "1 2")]:
        key = {"gap": "gap_au", "dipole_norm": "dipole_au"}[target]
        with pytest.raises(UserError, match=f"a.extxyz, frame 1: {key} is '{text}'"):
            found(target, {key: text})
    assert math.isnan(found("gap", {"gap_au": "nan"}))  # the reader counts it


def test_the_column_of_forces():
    def column(names, energy="energy_ev"):
        properties = "species:S:1:pos:R:3" + "".join(f":{name}:R:3" for name in names)
        comment = {"Properties": properties, energy: "1.0"}
        return lookup(target_of("forces+energy"), comment, energy, "ev", "a.extxyz").forces

    # The unit in the name counts, atomic units first; else the energy's, per Angstrom.
    both = column(["forces", "forces_hartree_bohr"])
    assert (both.key, both.per_atomic) == ("forces_hartree_bohr", 1.0)
    assert column(["Forces"]).per_atomic == pytest.approx(ase.Hartree / ase.Bohr, rel=1e-7)
    assert column(["forces_kcal_mol_angstrom"]).per_atomic == pytest.approx(
        UNITS["energy"]["kcal_mol"] / ase.Bohr, rel=1e-7
    )
    assert column(["forces", "REF_forces"]).key == "forces"
    assert column(["forces", "REF_forces"], "REF_energy").key == "ref_forces"
    assert lookup(target_of("energy"), {"energy_ev": "1"}, None, None, "a").forces is None
    with pytest.raises(UserError, match=r"a.extxyz has no forces .*species, pos, momenta"):
        column(["momenta"])


def test_names_of_a_target():
    assert target_of("energy+forces") is target_of("forces+energy")
    assert target_of("forces+energy").is_like(target_of("energy"))
    assert target_of("forces+energy").number == "energy"
    bonds = target_of("atomisation_energy+forces")
    assert bonds is target_of("forces+atomisation_energy")
    assert bonds.has_forces
    assert bonds.is_like(target_of("energy"))
    assert bonds.number == "atomisation_energy"


def test_from_the_fields_of_a_dataset():
    columns = {
        "homo": np.array([-0.3]),
        "lumo": np.array([0.1]),
        "dipole": np.array([[2.0, 3.0, 6.0]]),
    }
    assert TARGETS["gap"].of_fields(columns) == pytest.approx([0.4])
    assert TARGETS["dipole_norm"].of_fields(columns) == pytest.approx([7.0])
    assert TARGETS["homo"].of_fields(columns) == pytest.approx([-0.3])
    with pytest.raises(UserError, match="--target is 'polarisability': use one of gap, energy"):
        target_of("polarisability")
