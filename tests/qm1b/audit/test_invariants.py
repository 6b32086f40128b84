"""Invariants: a sound dataset breaks none, and every one is seen when it is broken."""

import numpy as np
import pytest

from qm1b.audit.invariants import FILE_CHECKS, OCCUPIED, ROW_CHECKS, Invariants, with_occupied
from qm1b.audit.picking import Picks
from qm1b.folder import shards
from qm1b.rows.schema import FIELDS, Conformer, Row
from qm1b.rows.suspects import OUTLIER_EV

WATER = np.array([8, 1, 1], np.uint8)
FORCES = ((0.0, 0.1, 0.2), (-0.1, -0.1, 0.0), (0.1, 0.0, -0.2))
ORBITALS = (-20.0, -1.0, -0.6, -0.5, -0.4, 0.3, 0.5)


def row(line=1, conformer=0, energy=-75.0, **changes):
    """A converged water molecule; `changes` are fields of its result or its conformer."""
    positions = np.random.default_rng([line, conformer]).normal(size=(3, 3)).astype(np.float32)
    molecule = {"smiles": "O", "seed": 1, "charge": 0, "numbers": WATER, "positions": positions}
    result = {"homo": -0.4, "lumo": 0.3, "energy_std": 1e-6, "dipole": (0.0, 0.0, 0.7)}
    result |= {"cycles": 9, "commutator_norm": 1e-5, "mo_energy": ORBITALS, "converged": True}
    result |= {"mulliken_charges": (changes.get("charge", 0) - 0.3, 0.2, 0.1)}
    values = {"status": "converged", "n_ao": 7, "energy": energy} | result | molecule | changes
    ours = {key: values.pop(key) for key in molecule}
    return Row(conformer=Conformer(line=line, conformer=conformer, **ours), **values)


def broken(folder, rows, fingerprint="f", damage=None):
    """The invariants that some rows break, and how often."""
    attributes = {"fingerprint": fingerprint, "forces": any(r.forces for r in rows)}
    path = shards.write_shard(folder, 0, rows, [], attributes)
    batch = shards.read_shard(path)
    seen = Invariants("f")
    if damage:
        damage(batch)
    readable = seen.add(path, batch)
    assert readable == ("offsets" not in seen.violations or not seen.violations["offsets"].count)
    return {name: v.count for name, v in seen.finish().items() if v.count}, seen.violations


SOUND = [row(1, 0), row(1, 1), row(2, 0)]


def test_a_sound_dataset_breaks_none(tmp_path):
    helium = row(
        3, smiles="[He]", numbers=np.array([2], np.uint8), positions=np.zeros((1, 3)), n_ao=1,
        mulliken_charges=(0.0,), homo=-0.9, lumo=float("nan"), mo_energy=(-0.9,),
    )  # fmt: skip
    nothing = row(
        4, status="error: lost", converged=False, mo_energy=(), mulliken_charges=(),
        homo=float("nan"),
    )  # fmt: skip
    one_left_out = row(5, n_ao=10, mo_energy=(*ORBITALS, 0.6, 0.7))
    counts, violations = broken(tmp_path, [*SOUND, helium, nothing, one_left_out])
    assert counts == {}
    assert set(violations) == {*ROW_CHECKS, *FILE_CHECKS}


def test_core_potentials_leave_fewer_orbitals(tmp_path):
    iodide = row(
        1, smiles="[I-]", numbers=np.array([53], np.uint8), positions=np.zeros((1, 3)), charge=-1,
        mulliken_charges=(-1.0,), n_ao=14, homo=-0.1, lumo=0.5, mo_energy=(*[-1.0] * 12, -0.1, 0.5),
    )  # fmt: skip
    batch = shards.read_shard(shards.write_shard(tmp_path, 0, [iodide], [], {"fingerprint": "f"}))
    assert with_occupied(batch, "dzvp")[OCCUPIED].tolist() == [[27, 27]]
    valence = with_occupied(batch, "def2-svp")
    assert valence[OCCUPIED].tolist() == [[13, 13]]
    assert not ROW_CHECKS["orbital_energies_inconsistent"](valence).any()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("not_finite", {"energy": float("nan")}),
        ("not_finite", {"dipole": (0.0, float("inf"), 0.0)}),
        ("gap_not_positive", {"lumo": -0.4, "mo_energy": (*ORBITALS[:5], -0.4, 0.5)}),
        ("odd_electron_count", {"charge": 1, "status": "nan", "converged": False}),
        ("odd_electron_count", {"charge": 10, "status": "nan", "converged": False}),
        ("status_contradicts_converged", {"converged": False}),
        ("status_contradicts_converged", {"status": "not_converged"}),
        ("orbital_energies_inconsistent", {"homo": -0.5}),
        ("orbital_energies_inconsistent", {"lumo": 0.31}),
        ("orbital_energies_inconsistent", {"mo_energy": (-1.0, -20.0, *ORBITALS[2:])}),
        ("orbital_energies_inconsistent", {"mo_energy": ORBITALS[:6]}),
        ("not_finite", {"mulliken_charges": (-0.3, float("nan"), 0.3)}),
        ("charges_do_not_add_up", {"mulliken_charges": (-0.3, 0.2, 0.2)}),
        ("not_finite", {"forces": (*FORCES[:2], (0.1, 0.0, float("nan")))}),
        ("not_finite", {"forces": ()}),
        ("forces_do_not_add_up", {"forces": (*FORCES[:2], (0.1, 0.0, 0.2))}),
        ("forces_without_convergence", {"status": "nan", "converged": False}),
    ],
)
def test_a_broken_row_is_seen(tmp_path, name, changes):
    forces = {"forces": FORCES} if "force" in name or "forces" in changes else {}
    sound = [row(*place, **forces) for place in ((1, 0), (1, 1), (2, 0))]
    counts, violations = broken(tmp_path, [*sound, row(7, 3, **forces | changes)])
    assert counts == {name: 1}
    assert violations[name].examples == ["line 7, conformer 3"]


def test_positions_that_are_no_numbers(tmp_path):
    positions = np.array([[0, 0, 0], [1, 0, np.nan], [0, 1, 0]], np.float32)
    counts, _ = broken(tmp_path, [*SOUND, row(7, 3, positions=positions)])
    assert counts == {"positions_not_finite": 1}


def test_duplicates(tmp_path):
    counts, violations = broken(tmp_path, [*SOUND, row(1, 1)])
    assert counts == {"duplicate_row": 1, "duplicate_geometry": 1}
    assert violations["duplicate_row"].examples == ["line 1, conformer 1"]
    twin = row(5, positions=SOUND[0].conformer.positions)
    assert broken(tmp_path, [*SOUND, twin])[0] == {"duplicate_geometry": 1}
    ion = row(5, positions=SOUND[0].conformer.positions, charge=2, homo=-0.5, lumo=-0.4)
    assert broken(tmp_path, [*SOUND, ion])[0] == {}


def test_conformers_of_a_line_may_coincide(tmp_path):
    """Relaxed ones, or those of an atom; other lines may not, whatever lies between."""
    same = {"positions": np.zeros((3, 3), np.float32)}
    twins = [row(4, 0, **same), row(4, 2, **same), row(4, 1, **same)]
    assert broken(tmp_path, [*SOUND, *twins])[0] == {}
    counts, violations = broken(tmp_path, [row(5, 1, **same), *twins, row(5, 0, **same)])
    assert counts == {"duplicate_geometry": 1}
    assert violations["duplicate_geometry"].examples == ["line 5, conformer 0"]
    checks = Invariants("f")
    path = shards.write_shard(tmp_path, 0, [*twins, *SOUND], [], {"fingerprint": "f"})
    checks.add(path, shards.read_shard(path))
    checks.finish()
    assert checks.coinciding == 2


def test_files(tmp_path):
    assert broken(tmp_path, SOUND, fingerprint="g")[0] == {"foreign_shard": 1}

    def swap(columns):
        columns["atom_offset"][1:3] = columns["atom_offset"][2:0:-1].copy()

    counts, violations = broken(tmp_path, SOUND, damage=swap)
    assert counts == {"offsets": 1}
    assert "atom_offset" in violations["offsets"].examples[0]


def test_units(tmp_path, monkeypatch):
    """A shard sealed with a unit that is not the schema's."""
    write = shards._write_texts

    def wrong(data, units, description):
        write(data, units="eV" if units == "e*bohr" else units, description=description)

    with monkeypatch.context() as patch:
        patch.setattr(shards, "_write_texts", wrong)
        path = shards.write_shard(tmp_path, 0, SOUND, [], {"fingerprint": "f"})
    checks = Invariants("f")
    checks.add(path, shards.read_shard(path))
    assert checks.finish()["units"].count == sum(f.unit == "e*bohr" for f in FIELDS)


def shard(folder, rows):
    return shards.read_shard(shards.write_shard(folder, 0, rows, [], {}))


def test_outliers_among_conformers(tmp_path):
    def of(line, conformer, energy, **changes):
        return row(line, conformer, energy, smiles="O" * line, **changes)

    random = np.random.default_rng(0)
    rows = [of(n, c, -75.0 + 0.003 * random.normal()) for n in (1, 2) for c in range(8)]
    rows += [of(3, c, -75.0 + 0.5 * random.normal()) for c in range(8)]  # wide, but no outlier
    rows += [of(4, 0, -75.0), of(4, 1, -70.0)]  # two: who is right?
    nothing = Picks(3, seed=0)
    nothing.add(shard(tmp_path, rows))
    assert nothing.suspected == 0
    rows[5] = of(1, 5, -75.0 + 1.2 * OUTLIER_EV / 27.2)
    rows[9] = of(2, 1, -77.0)
    rows[3] = of(1, 3, -60.0, status="not_converged", converged=False)
    batch = shard(tmp_path, rows)
    picks = Picks(3, seed=0)
    picks.add(batch)
    picked = [(p.row["line"], p.row["conformer"]) for p in picks.suspects]
    assert picked == [(2, 1), (1, 5)]
    assert picks.suspects[0].deviation_ev == pytest.approx(-2 * 27.2, abs=0.5)
    assert picks.suspected == 2
    picked = picks.suspects[0].conformer
    expected = rows[9].conformer
    assert (picked.smiles, picked.charge, picked.seed) == ("OO", 0, 1)
    np.testing.assert_array_equal(picked.positions, expected.positions)
    np.testing.assert_array_equal(picked.numbers, expected.numbers)


def test_outliers_among_frames_of_one_molecule(tmp_path):
    """Each on a line of its own, without SMILES, between frames of another molecule."""
    random = np.random.default_rng(0)
    rows = [
        row(2 * n + k, n, -75.0 * (k + 1) + 0.003 * random.normal(), seed=k + 1, smiles="")
        for n in range(8)
        for k in (0, 1)
    ]
    rows[6] = row(6, 3, -77.0, seed=1, smiles="")
    picks = Picks(3, seed=0)
    picks.add(shard(tmp_path, rows))
    assert [(p.row["line"], p.row["conformer"]) for p in picks.suspects] == [(6, 3)]
    assert picks.suspects[0].deviation_ev == pytest.approx(-2 * 27.2, abs=0.5)


def test_the_sample_does_not_depend_on_the_order_and_depends_on_the_seed(tmp_path):
    batch = shard(tmp_path, [row(n, c) for n in range(1, 60) for c in range(3)])
    parts = np.array_split(np.arange(len(batch)), 7)

    def sample(order, seed=0):
        picks = Picks(20, seed)
        for part in order:
            picks.add(batch.take(part))
        return [(p.row["line"], p.row["conformer"]) for p in picks.sample]

    assert len(sample(parts)) == 20
    assert sample(parts) == sample(parts[::-1])
    assert sample(parts) != sample(parts, seed=1)
    bad = row(1, status="not_converged", converged=False)
    picks = Picks(5, 0)
    picks.add(shard(tmp_path, [bad]))
    assert picks.sample == []
