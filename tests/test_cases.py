"""Files that other people wrote, by every reader: each gives the right answer, or the reason.

ANSWERS has the records of each file in tests/data/cases: a formula with the charge, a SMILES, or
why the record is refused.  A new file needs an entry.
"""

import io
import tarfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from fake_engine import Solver
from fake_runs import settings
from rdkit import Chem

import pyscf_ipu as pi
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import symbol_of
from pyscf_ipu.molecule import smiles as embedder
from pyscf_ipu.molecule.named.argument import find_molecule
from qm1b import inputs
from qm1b.conformers.embed import embed
from qm1b.rows.schema import DROP_REASONS, Drop
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from qm1b.screening.selection import Criteria, select
from schnet.errors import UserError
from schnet.sources import open_source

CASES = Path(__file__).parent / "data" / "cases"
LISTS = (".smi", ".csv", ".txt")


class No(NamedTuple):
    """A record that is refused: the reason, and words of the sentence that says so."""

    reason: str
    words: str


RADICAL = No("radical", "is an open shell")
MOMENTS = No("radical", "magnetic moments (magmoms) are not zero")
NAMES = No("ambiguous", "a name of")
PAIR = No("ambiguous", "might be charge and multiplicity")
UNREADABLE = No("unparsable", "an element and x, y, z in Angstrom are needed")
PROPERTIES = No("unparsable", "name:type:width")

ANSWERS = {
    "06_h4_square.xyz": ["H4"],
    "07_n2_2.06bohr.xyz": ["N2"],
    "13_no_radical.xyz": [No("odd_electrons", "an odd number of electrons")],
    "15_qm9_two_raw_files_joined.xyz": ["CH4", "H2O"],
    "17_fortran_D_exponent.xyz": ["HF"],
    "18_bom.xyz": ["HF"],
    "19a_comment_-1_1_hydroxide_water.xyz": ["H3O2 -1"],
    "19b_comment_0_3_methylene.xyz": [RADICAL],
    "21_ghost_gaussian.xyz": [No("ghost", "'O-Bq' is a ghost")],
    "23_ase_magmom.extxyz": [MOMENTS],
    "25_psi4_418_numbers.xyz": ["H5NO"],
    "27_sampl7.csv": ["CCO", "C[C@@H]1CC[C@H](C(=O)N2CCC=C(F)C2)O1", "CCN"],
    "28_pubchem_cid_smiles.txt": [
        "CC(=O)OC(CC(=O)[O-])C[N+](C)(C)C",
        "CC(=O)OC(CC(=O)O)C[N+](C)(C)C",
        "O=C(O)C1=CC=CC(O)C1O",
    ],
    "30_spin_s.xyz": ["H2O +2", RADICAL, RADICAL, No("unparsable", "S=half: it must be")],
    "31_two_integers.xyz": [
        *("H2O", PAIR, PAIR, "H2O", "H2O +2", RADICAL, "H2O", "H2O +2"),
        *("H2O +2", No("ambiguous", "'2 1 CO2' might be charge")),
    ],
    "32_ghosts.xyz": [
        No("ghost", f"'{label}' is a ghost")
        for label in ("O:", "@O", "Gh(O)", "X", "Bq", "Xx", "0", "O_ghost", "GhO", "Du")
    ],
    "33_labels.xyz": ["H2O", "H2O", NAMES, UNREADABLE, UNREADABLE],
    "34_pdb_names.xyz": [NAMES, NAMES, NAMES, NAMES],
    "35_capitals.xyz": ["CaO", "He", "Cl4Si", "ClNa", "BrLi", "H2Se", "CaCl2"],
    "36_magmoms.extxyz": [*[MOMENTS] * 7, "F2"],
    "37_mathematica.xyz": ["HF", "HF", UNREADABLE],
    "38_blank_lines.xyz": ["H2O", "H2O"],
    "39_header_too_many.xyz": [
        No("unparsable", f"line {line} ('and another one') is no atom") for line in (3, 9)
    ],
    "40_title_lines.xyz": ["H2O", "H2O +2"],
    "41_lone_cr_and_latin1.xyz": ["H2O", "H2O"],
    "42_utf16.xyz": ["H2O"],
    "43_colon_in_properties.extxyz": ["H2O", PROPERTIES, PROPERTIES],
    "44_torn_first.xyz": [No("unparsable", "the frame ends after 1 of 3 atoms"), "H2O"],
    "45_counts.xyz": [
        No("unparsable", "line 5 ('H 0 -0.76 -0.47') is left over"),
        No("unparsable", "line 6: the frame has no atoms"),
        "H2O",
    ],
    "46_huge_count.xyz": ["H2O", No("unparsable", "ends after 3 of 999999999 atoms")],
    "47_negative_count.xyz": [No("unparsable", "'-3' stands where"), "H2O"],
    "48_tabs_and_units.xyz": ["H2O +2", "HF", "HF"],
    "50_v3000.sdf": ["C2H3O2 -1", "CH6N +1", No("radical", "1 unpaired electron"), "CH4O"],
    "51_v2000_chg_rad.sdf": [
        *("C2H3O2 -1", "CH6N +1", No("radical", "1 unpaired electron")),
        *(No("mismatch", "charge +0 is given, the atoms have +1"), RADICAL, "H2O"),
    ],
    # Clusters: qm1b computes none of those whose bonds are known.
    "52_fragments.sdf": [
        "H4O2",
        No("multi_fragment", "of two fragments only 0.70 Angstrom apart"),
        No("multi_fragment", "of two fragments only 0.30 Angstrom apart"),
    ],
    "29_rdkit_hard.smi": [
        "C1[C@H]2[C@@H]3O[C@@H]3[C@@H]1[C@@]13O[C@@]21[C@@H]1C[C@H]3[C@@H]2O[C@@H]21",
        "O=C1N=CN=C2[C@H]1C=NN2[C@@H]1O[C@H](CO)[C@@H](O)[C@H]1O",
        "C=CCn1c([C@@H]2C[C@@H]3CC[C@@H]2O3)nnc1N1CCN(c2ccccc2)CC1",
        "CC(=O)N1C[C@H]2CC[C@H]1c1ccccc12",
        "CC(=O)N1C[C@@H]2CC[C@H]1c1ccccc12",
        "CC(=O)N1C[C@H]2CC[C@@H]1c1ccccc12",
        "O=CCC1OC2COC12",
        "CN1C=CC(=N)NC1=O",
        "C#CC#C[C@H]1CC[C@@H](C#CC#C)CC1",
    ],
}
EMBEDDED = {name: answer for name, answer in ANSWERS.items() if name != "29_rdkit_hard.smi"}
"""Files whose SMILES RDKit embeds at once."""


def formula(numbers, charge=0):
    text = pi.Molecule(numbers, np.zeros((len(numbers), 3)), charge)
    return repr(text)[9:].split(",")[0].rstrip(")") + (f" {charge:+d}" if charge else "")


def screened(path):
    """What qm1b makes of each record by itself: no record is a duplicate."""
    for record in inputs.read(path, settings()):
        yield Screen(Limits(Solver(basis="sto-3g").n_ao, 300, keep_charged=True))(record)


def test_every_case_has_an_answer():
    assert {path.name for path in CASES.iterdir()} == {*ANSWERS, "README.md"}


@pytest.mark.parametrize("name", ANSWERS)
def test_qm1b_reads_every_record_or_says_why_not(name):
    found = list(screened(CASES / name))
    assert len(found) == len(ANSWERS[name])
    for drop, answer in zip(found, ANSWERS[name], strict=True):
        if isinstance(answer, No) or name == "52_fragments.sdf":
            assert isinstance(drop, Drop)
            assert drop.reason == getattr(answer, "reason", "multi_fragment")
            assert drop.reason in DROP_REASONS
            if drop.reason not in ("odd_electrons", "multi_fragment"):  # its own words
                assert answer.words in drop.detail
        elif name.endswith(LISTS):
            assert drop.smiles == Chem.CanonSmiles(answer)
        else:
            assert formula(drop.geometry.numbers.tolist(), drop.charge) == answer


@pytest.mark.parametrize("name", [name for name in ANSWERS if not name.endswith(LISTS)])
def test_the_library_reads_every_record_or_says_why_not(name):
    path = CASES / name
    read = pi.Molecule.from_sdf if name.endswith(".sdf") else pi.Molecule.from_xyz
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, answer in enumerate(ANSWERS[name]):
            if isinstance(answer, No):
                with pytest.raises(pi.InvalidMolecule) as error:
                    read(path, index=index).check()
                is_open = answer.reason == "radical"  # which is read, but not a closed shell
                assert ("multiplicity" if is_open else answer.words) in str(error.value)
            else:
                mol = read(path, index=index)
                assert formula(mol.numbers, mol.charge) == answer
        with pytest.raises(pi.InvalidMolecule, match=f"no molecule of index={len(ANSWERS[name])}"):
            read(path, index=len(ANSWERS[name]))
        if not any(isinstance(answer, No) for answer in ANSWERS[name]):
            all_of_it = pi.read_molecules(path)
            assert [formula(mol.numbers, mol.charge) for mol in all_of_it] == ANSWERS[name]


@pytest.mark.parametrize("name", [name for name in ANSWERS if not name.endswith(LISTS)])
def test_the_command_says_that_a_file_holds_more(name):
    path, answer = CASES / name, ANSWERS[name][0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if isinstance(answer, No):
            with pytest.raises(pi.InvalidMolecule):
                find_molecule(str(path)).check()
            return
        mol = find_molecule(str(path))
    assert formula(mol.numbers, mol.charge) == answer
    more = [text for text in map(str, (w.message for w in said)) if "only the first" in text]
    assert len(more) == (len(ANSWERS[name]) > 1)


@pytest.mark.parametrize("name", [name for name in EMBEDDED if not name.endswith(".sdf")])
def test_schnet_predicts_every_record_or_says_why_not(name):
    answers = ANSWERS[name]
    if all(isinstance(answer, No) and "line" in answer.words for answer in answers):
        with pytest.raises(UserError, match="no atom"):
            open_source(CASES / name, None)
        return
    rows = [row for part in open_source(CASES / name, None).parts() for row in part]
    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(answer, No) and answer.reason != "odd_electrons":  # it counts no electrons
            assert answer.words in row.reason
        else:
            assert row.reason == ""
        if isinstance(answer, str) and not name.endswith(LISTS):
            assert formula(row.numbers.tolist()) == answer.split()[0]


def test_qm9s_archive_is_read_whole(tmp_path):
    """As published: a file per molecule, exponents of Mathematica, three lines below the atoms."""
    joined = (CASES / "15_qm9_two_raw_files_joined.xyz").read_text()
    methane, water = joined.split("3\ngdb 3")
    path = tmp_path / "dsgdb9nsd.xyz.tar.bz2"
    with tarfile.open(path, "w:bz2") as archive:
        for number, text in ((1, methane), (3, f"3\ngdb 3{water}")):
            text = text.replace("-0.0060313176", "-6.0313176*^-3")
            info = tarfile.TarInfo(f"dsgdb9nsd_{number:06d}.xyz")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    found = list(screened(path))
    assert [each.id for each in found] == ["gdb 1", "gdb 3"]
    assert found[0].geometry.positions[1, 1] * BOHR_TO_ANGSTROM == pytest.approx(-0.0060313176)


def test_select_reads_the_second_column_and_says_so(tmp_path):
    lines = []
    found = select([CASES / "28_pubchem_cid_smiles.txt"], Criteria((1, 99)), lines.append)
    assert [line.split() for line in lines] == [
        [smiles.encode(), str(i).encode()]
        for i, smiles in enumerate(
            (
                "CC(=O)OC(CC(=O)[O-])C[N+](C)(C)C",
                "CC(=O)OC(CC(=O)O)C[N+](C)(C)C",
                "C1=CC(C(C(=C1)C(=O)O)O)O",
            ),
            1,
        )
    ]
    assert "the second column is read as SMILES" in found.remarks[0]
    assert "the second column" in open_source(CASES / "28_pubchem_cid_smiles.txt", None).remarks[0]


def test_atomic_numbers_give_the_nuclear_repulsion():
    mol = pi.Molecule.from_xyz(CASES / "25_psi4_418_numbers.xyz")
    distance = np.linalg.norm(mol.positions[:, None] - mol.positions[None], axis=-1)
    i, j = np.triu_indices(mol.n_atoms, 1)
    repulsion = (mol.numbers[i] * mol.numbers[j] / distance[i, j]).sum()
    assert repulsion == pytest.approx(38.8138764635, abs=1e-6)
    assert symbol_of(int(mol.numbers[0])) == "O"


@pytest.mark.parametrize(
    ("name", "index", "bohr"),
    [
        ("07_n2_2.06bohr.xyz", 0, 2.06),
        ("17_fortran_D_exponent.xyz", 0, 0.916999 / BOHR_TO_ANGSTROM),
        ("37_mathematica.xyz", 0, (0.92 - 0.0015) / BOHR_TO_ANGSTROM),
        ("48_tabs_and_units.xyz", 1, 0.92 / BOHR_TO_ANGSTROM),
        ("48_tabs_and_units.xyz", 2, 1.74),
    ],
)
def test_distances_are_those_that_were_written(name, index, bohr):
    mol = pi.Molecule.from_xyz(CASES / name, index=index)
    assert np.linalg.norm(mol.positions[0] - mol.positions[1]) == pytest.approx(bohr, abs=1e-5)


@pytest.mark.parametrize(
    ("comment", "charge", "words"),
    [
        ("-1 1", 0, None),
        ("12 7", 0, None),
        ("2 1", 0, None),
        ("0 3", 0, "of multiplicity 3"),
        ("1 2", 1, "of multiplicity 2"),
    ],
)
def test_a_given_charge_settles_two_integers(comment, charge, words, tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text(f"3\n{comment}\nO 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n")
    if words is None:
        assert pi.Molecule.from_xyz(path, charge=charge).charge == charge
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that two integers were read so
            molecule = pi.Molecule.from_xyz(path, charge=charge)
        with pytest.raises(pi.InvalidMolecule, match=words):
            molecule.check()


@pytest.mark.long
def test_smiles_that_rdkit_embeds_badly_get_a_reason_within_seconds(monkeypatch):
    """Every conformer is one stereoisomer, that of its SMILES where the SMILES states it."""
    monkeypatch.setattr(embedder, "MAX_SECONDS", 2)
    for number, candidate in enumerate(screened(CASES / "29_rdkit_hard.smi")):
        found = embed(candidate, settings(conformers=1, embed_timeout=4.0))
        assert bool(found.conformers) == (number >= 4)
        assert found.conformers or found.drop.reason in ("embed_failed", "embed_timeout")
    rows = [row for part in open_source(CASES / "29_rdkit_hard.smi", None).parts() for row in part]
    assert [bool(row.reason) for row in rows] == [True] * 4 + [False] * 5
    reasons = [row.reason.split(":")[0] for row in rows[:4]]
    assert set(reasons) <= {"embed_failed", "embed_timeout"}
    for row in (rows[4], rows[5], rows[8]):  # their SMILES state every centre
        graph = pi.Molecule(row.numbers, row.positions_bohr).to_rdkit()
        Chem.AssignStereochemistryFrom3D(graph)
        assert Chem.MolToSmiles(Chem.RemoveHs(graph)) == Chem.CanonSmiles(row.smiles)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "level", "energy", "tolerance"),
    [
        ("07_n2_2.06bohr.xyz", {"xc": "hf"}, -107.493567129, 1e-7),
        ("15_qm9_two_raw_files_joined.xyz", None, -40.523679, 5e-6),
    ],
)
def test_energies(name, level, energy, tolerance):
    """psi4's RHF/STO-3G of N2; QM9's U0 of methane without the zero-point energy."""
    mol = pi.Molecule.from_xyz(CASES / name, index=0)
    if level is None:
        found = pi.rks(mol, solver=pi.Solver(pi.Settings.preset("qm9")))
    else:
        found = pi.rks(mol, basis="sto-3g", precision="float64", **level)
    assert found.energy == pytest.approx(energy, abs=tolerance)


@pytest.mark.long
@pytest.mark.parametrize("stability", [False, True])
def test_square_h4_ends_at_its_lowest_state(stability):
    """pyscf issue 1774: one start alone ends at a saddle, -1.67708182 Hartree."""
    mol = pi.Molecule.from_xyz(CASES / "06_h4_square.xyz")
    level = {"xc": "hf", "basis": "sto-3g", "precision": "float64"}
    found = pi.rks(mol, **level, stability=stability)
    assert found.energy == pytest.approx(-1.75914707, abs=1e-6)
    assert bool(found.stable) is stability
