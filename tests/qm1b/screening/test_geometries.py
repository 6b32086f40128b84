"""Records with a geometry of their own: SDF entries and XYZ frames."""

import gzip

import numpy as np
import pytest
from fake_engine import Solver
from fake_runs import recipe, settings
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files.xyz import parse_frame as parse
from qm1b import inputs
from qm1b.conformers.embed import embed
from qm1b.folder import shards
from qm1b.formats.extxyz import frame
from qm1b.formats.load import load
from qm1b.process.display import Display
from qm1b.rows.schema import DROP_REASONS, Drop
from qm1b.run.generate import Run, generate
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen

WATER = "O 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n"
AMMONIUM = "N 0 0 0\nH .6 .6 .6\nH -.6 -.6 .6\nH -.6 .6 -.6\nH .6 -.6 -.6\n"


def screened(path, copies=1, keep_charged=True):
    screen = Screen(Limits(Solver(basis="sto-3g").n_ao, 128, keep_charged), copies)
    return [screen(record) for record in inputs.read(path, settings())]


def xyz(tmp_path, *frames):
    """Screened frames; each is a comment and its atoms."""
    path = tmp_path / "a.xyz"
    path.write_text(
        "".join(f"{atoms.count(chr(10))}\n{comment}\n{atoms}" for comment, atoms in frames)
    )
    return screened(path)


def sdf(tmp_path, *blocks):
    path = tmp_path / "a.sdf.gz"
    path.write_bytes(gzip.compress("$$$$\n".join([*blocks, ""]).encode()))
    return screened(path)


def block(smiles, hydrogens=True, edit=lambda graph: None, fields=""):
    """The mol block of an embedded SMILES, with the data fields of its SDF entry."""
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMolecule(graph, randomSeed=1)
    graph = graph if hydrogens else Chem.RemoveHs(graph)
    edit(graph)
    return Chem.MolToMolBlock(graph) + fields


def test_an_xyz_frame_is_a_conformer_as_it_stands(tmp_path):
    (water,) = xyz(tmp_path, ("water, 0 K", WATER.replace("O", "8").replace("H", "h")))
    assert (water.smiles, water.charge, water.first) == ("", 0, 0)
    result = embed(water, recipe(1, seed=3))
    (conformer,) = result.conformers
    assert conformer.embedding == "given"
    assert conformer.numbers.tolist() == [8, 1, 1]
    np.testing.assert_allclose(
        conformer.positions[1] * BOHR_TO_ANGSTROM, [0, 0.76, -0.47], atol=1e-6
    )


def test_extended_xyz_says_smiles_charge_and_columns(tmp_path):
    comment = 'Properties=id:I:1:pos:R:3:species:S:1 smiles="[NH4+]" charge=1 pbc="F F F"'
    rows = [line.split() for line in AMMONIUM.splitlines()]
    atoms = "".join(f"{i} {x} {y} {z} {s}\n" for i, (s, x, y, z) in enumerate(rows[::-1]))
    (ammonium,) = xyz(tmp_path, (comment, atoms))
    assert (ammonium.smiles, ammonium.charge) == ("[NH4+]", 1)
    assert ammonium.geometry.numbers.tolist() == [7, 1, 1, 1, 1]
    np.testing.assert_array_equal(ammonium.geometry.positions[0], 0.0)


def test_our_own_extended_xyz_is_an_input(finished, tmp_path):
    """Its comments hold ASE's _JSON where ASE would misread a SMILES."""
    row = next(iter(load(finished[0])))
    fluoride = {"numbers": np.array([9, 1]), "positions": np.array([[0, 0, 0], [0, 0, 1.8]])}
    two = {"input_atom": np.array([0, 1])}
    path = tmp_path / "a.extxyz"
    path.write_text(
        frame(row | {"smiles": ""})
        + frame(row)
        + frame(row | fluoride | {"smiles": "F", "mulliken_charges": np.zeros(2)} | two)
    )
    bare, water, acid = screened(path)
    assert (bare.smiles, water.smiles, acid.smiles) == ("", "O", "F")
    for text in (r"_C/C=C\F", "nan"):
        assert parse(frame(row | {"smiles": text}).rstrip("\n")).keys["smiles"] == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"_JSON [true, false, 1]"', "T F 1"),
        ("'_JSON \"F\"'", "F"),
        ("{_JSON null}", ""),
        (r'"_JSON \"\\ud800\""', "?"),
        ('"_JSON ["', "_JSON ["),
        (f'"_JSON {"[" * 4000}"', f"_JSON {'[' * 4000}"),
    ],
)
def test_values_in_json(text, value):
    assert parse(f"1\nkey={text} charge=0\nHe 0 0 0").keys == {"key": value, "charge": "0"}


def test_frames_of_one_molecule_are_its_conformers(tmp_path):
    moved = WATER.replace("0.76", "0.78")
    with_smiles = ("smiles=O", WATER), ("smiles=O", moved), ("smiles=O", WATER)
    first, second, third = xyz(tmp_path, *with_smiles)
    assert (first.first, second.first) == (0, 1)
    assert third.reason == "duplicate"
    # Without SMILES the bonds tell molecules apart: HOOH and water are not one.
    peroxide = "O 0 .7 0\nO 0 -.7 0\nH .8 .9 .4\nH -.8 -.9 .4\n"
    candidates = xyz(tmp_path, ("", WATER), ("", peroxide), ("", moved))
    assert [each.first for each in candidates] == [0, 0, 1]
    assert candidates[0].identity == candidates[2].identity != candidates[1].identity


@pytest.mark.parametrize(
    ("comment", "atoms", "reason"),
    [
        ("charge=1", WATER, "odd_electrons"),
        ("charge=99", WATER, "charged"),
        ("charge=half", WATER, "unparsable"),
        ("smiles=O charge=2", WATER, "mismatch"),
        ("smiles=CO", WATER, "mismatch"),
        ("smiles=O", "O 0 0 0\n", "missing_hydrogens"),
        ("smiles=C(", WATER, "unparsable"),
        ("smiles=[CH2]", "C 0 0 0\nH 1 0 0\nH 0 1 0\n", "radical"),
        ("multiplicity=3", WATER, "radical"),
        ("pbc='T F F'", WATER, "periodic"),
        ('Lattice="9 0 0 0 9 0 0 0 9"', WATER, "periodic"),
        ("", "O 0 0 nan\nH 0 0 1\nH 0 1 0\n", "invalid_geometry"),
        ("", "O 0 0 1e300\nH 0 0 1\nH 0 1 0\n", "invalid_geometry"),
        ("smiles=O", "O 0 0 200\nH 0 0 201\nH 0 1 200\n", "invalid_geometry"),
        ("", "O 0 0 0\nH 0 0 0.01\nH 0 1 0\n", "invalid_geometry"),
        ("", "O 0 0\nH 0 0 0.01\nH 0 1 0\n", "unparsable"),
        ("", "Q 0 0 0\n", "unparsable"),
        ("", "U 0 0 0\n", "unsupported_element"),
        ("", "C 0 0 0\n" * 80, "too_large"),
    ],
)
def test_frames_that_are_left_out(tmp_path, comment, atoms, reason):
    (drop,) = xyz(tmp_path, (comment, atoms))
    assert isinstance(drop, Drop)
    assert drop.reason == reason
    assert drop.smiles == comment.removesuffix(" charge=2").partition("smiles=")[2]
    assert reason in DROP_REASONS


class Said(Display):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def test_a_wrong_unit_is_told_once(tmp_path):
    """Two of three frames have their positions in Bohr; the run says so in one line."""
    path = tmp_path / "a.xyz"
    rows = [line.split() for line in WATER.splitlines()]
    bohr = [
        "".join(f"{s} {x} {factor * float(y)} {factor * float(z)}\n" for s, x, y, z in rows)
        for factor in (1.88, 1.89)
    ]
    path.write_text("".join(f"3\n\n{atoms}" for atoms in (WATER, *bohr)))
    display = Said()
    generate(Run(path, tmp_path / "out", settings(conformers=1), 1, "fake_engine:Solver"), display)
    (warning,) = [text for text in display.said if "Warning" in text]
    assert "2 geometries (the first is record 2): the nearest neighbour" in warning
    assert "in Bohr, and were read as Angstrom" in warning
    assert str(path) in warning


def test_sdf_entries_bring_geometry_charge_and_graph(tmp_path):
    acetate = block("CC(=O)[O-]", fields=">  <charge>\n-1\n\n>  <name>\nacetate\n\n")
    chiral = block("C[C@H](F)O")
    candidates = sdf(tmp_path, acetate, chiral, block("C[C@@H](F)O"), acetate)
    given = ["CC(=O)[O-]", "C[C@H](F)O", "C[C@@H](F)O", "CC(=O)[O-]"]
    assert [each.smiles for each in candidates] == [*map(Chem.CanonSmiles, given)]
    assert candidates[0].charge == -1
    assert candidates[3].reason == "duplicate"
    angstrom = candidates[1].geometry.positions * BOHR_TO_ANGSTROM
    written = [line.split()[:3] for line in chiral.splitlines()[4:13]]
    np.testing.assert_allclose(angstrom, np.array(written, dtype=float), atol=1e-5)


def flat(graph):
    conformer = graph.GetConformer()
    conformer.Set3D(False)
    for i in range(graph.GetNumAtoms()):
        place = conformer.GetAtomPosition(i)
        conformer.SetAtomPosition(i, (place.x, place.y, 0.0))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nothing\n", "unparsable"),
        (lambda: block("CCO", hydrogens=False), "missing_hydrogens"),
        (lambda: block("CCO", edit=flat), "no_geometry"),
        (lambda: block("CCO", fields="> <CHARGE>\n2\n"), "mismatch"),
        (lambda: block("[CH3]"), "radical"),
        (lambda: block("O.O"), "multi_fragment"),
        (lambda: block("C[Ra]C"), "unsupported_element"),
        (lambda: block("CCO").replace(" C  ", " Qq "), "unparsable"),
        ("x" * 300_000 + "\n", "too_long"),
        ("\n" * 300_000 + "\n", "too_long"),
    ],
)
def test_entries_that_are_left_out(tmp_path, content, reason):
    (drop,) = sdf(tmp_path, content() if callable(content) else content)
    assert isinstance(drop, Drop)
    assert drop.reason == reason
    assert reason in DROP_REASONS


def test_an_entry_that_is_left_out_still_has_its_smiles(tmp_path):
    drops = sdf(tmp_path, block("[CH3]"), block("O.O"), block("CI"), "nothing\n")
    assert [drop.smiles for drop in drops] == ["[CH3]", "O.O", "CI", ""]


def test_an_entry_has_the_stereo_and_the_bonds_of_its_positions(tmp_path):
    def stretched(graph):
        graph.GetConformer().SetAtomPosition(7, (4.0, 4.0, 4.0))

    blocks = [block("C[C@H](F)Cl"), block("C[C@H](F)Cl", edit=stretched), block("[2H]C([2H])O")]
    rows = [embed(each, recipe(1)).conformers[0] for each in sdf(tmp_path, *blocks)]
    assert [(row.smiles, row.isomer_smiles, row.torn) for row in rows] == [
        ("C[C@H](F)Cl", "C[C@H](F)Cl", False),
        ("C[C@H](F)Cl", "", True),
        ("CO", "CO", False),
    ]


def test_copies_of_a_geometry_are_displaced_each_for_itself(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text(f"3\n\n{WATER}3\n\n{WATER.replace('0.76', '0.78')}")
    first, second = screened(path, copies=3)
    asked = recipe(3, seed=1, rattle_angstrom=0.02)
    conformers = [*embed(first, asked).conformers, *embed(second, asked).conformers]
    assert [c.conformer for c in conformers] == [0, 1, 2, 3, 4, 5]
    assert len({c.positions.tobytes() for c in conformers}) == 6


def test_a_run_over_frames_and_one_that_goes_on_with_it(tmp_path):
    path = tmp_path / "a.xyz"
    frames = [WATER.replace("0.76", f"0.{76 + i}") for i in range(9)]
    path.write_text("".join(f"3\nsmiles=O\n{frame}" for frame in frames) + "junk\n")
    out = tmp_path / "out"
    run = Run(path, out, settings(conformers=1, unit_rows=4), 1, "fake_engine:Solver")
    generate(run)
    paths = shards.shards(out)
    before = [shards.read_shard(shard) for shard in paths]
    assert [n for shard in before for n in shard["conformer"]] == list(range(9))
    assert {text for shard in before for text in shard["embedding"]} == {"given"}
    assert [drop.line for drop in shards.read_drops(paths[-1])] == [10]
    paths[1].unlink()
    generate(run)
    for ours, theirs in zip(map(shards.read_shard, paths), before, strict=True):
        for name in ours.columns:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
