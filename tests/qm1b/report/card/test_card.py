"""The dataset card: what only people know is stated or not, all else is the dataset's."""

import json
from dataclasses import replace
from importlib.resources import files

import pyarrow.parquet as pq
import pytest
from fake_runs import fake_run

from pyscf_ipu.settings.presets import PRESETS
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.report.card.croissant import croissant
from qm1b.report.card.facts import NOT_STATED, Statements, gather
from qm1b.report.card.text import card
from qm1b.report.card.write import write

SECTIONS = (
    *("Motivation", "Composition", "Level of theory", "Measured error", "Collection process"),
    *("Preprocessing, cleaning, labelling", "Distributions", "Uses", "Distribution"),
    "Maintenance",
)


def front_matter(text):
    """The lines between the first two rules."""
    assert text.startswith("---\n")
    return text.split("---\n")[1].splitlines()


def section(text, title):
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def test_a_card_without_statements(finished):
    facts = gather(finished[0])
    text = card(facts, Statements("mine"), ["figures/overview.png"])
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [*SECTIONS]
    assert front_matter(text)[:4] == [
        *('pretty_name: "mine"', 'license: "unknown"', "size_categories:", "- n<1K")
    ]
    assert f"**Licence**: {NOT_STATED}" in text
    assert text.count(NOT_STATED) == 5
    assert "8 conformers of 7 molecules" in text
    level = section(text, "Level of theory")
    assert "libxc 475 (HYB_GGA_XC_B3LYP5)" in level
    assert "float32 throughout" in level
    assert "| preset | `qm1b`, the level of QM1B (arXiv:2311.01135) |" in level
    assert "| integration grid | grid level 0, PySCF's, with NWChem's pruning |" in level
    assert "| jax |" in level
    assert "Not verified yet: run `qm1b verify DIR`" in section(text, "Measured error")
    collection = section(text, "Collection process")
    for reason in ("unparsable", "empty", "radical", "duplicate", "multi_fragment"):
        assert f"| `{reason}` | 1 | " in collection
    assert "| `too_large` | 2 | " in collection
    assert "| error | 4 |" in section(text, "Composition")
    shown = section(text, "Distributions")
    assert "![overview](figures/overview.png)" in shown


def test_rows_of_the_float64_rung_are_not_called_float32(tmp_path):
    out, _ = fake_run(tmp_path, "O\n[SiH4]\nS\n")  # silicon converges in float64, sulphur damped
    facts = gather(out)
    assert facts.stats.rungs == {"plain": 2, "second_order": 2, "damped": 2}
    level = section(card(facts, Statements("x"), []), "Level of theory")
    assert (
        "| float32, but 2 rows of the retry ladder's `second_order` in float64 throughout |"
        in level
    )
    assert "`damped` 2 rows" in level


def test_the_published_dataset_of_the_level(finished):
    """It follows from the level, whatever was typed; another basis or a fit is no dataset's."""
    facts = gather(finished[0])

    def level(**changes):
        manifest = replace(facts.manifest, settings=facts.settings | changes)
        return section(
            card(replace(facts, manifest=manifest), Statements("x"), []), "Level of theory"
        )

    qm9 = dict(PRESETS["qm9"].level)
    assert "| preset | `qm9`, the level of QM9 (doi:10.1038/sdata.2014.22) |" in level(**qm9)
    assert "| preset | `qm9`" in level(**qm9 | {"precision": "float64"})
    pruned = {"prune": True, "grid_kind": "pyscf"}
    for other in ({"basis": "6-31g*"}, {"jk": "ri", "jk_above_aos": 128}, pruned):
        assert "| preset |" not in level(**qm9 | other)


def test_every_size_has_its_class(finished):
    facts = gather(finished[0])
    for rows, name in (
        *((999, "n<1K"), (5e8, "100M<n<1B"), (1e9, "1B<n<10B"), (5e10, "10B<n<100B")),
        *((5e11, "100B<n<1T"), (1e12, "n>1T")),
    ):
        many = replace(facts, stats=replace(facts.stats, rows=int(rows)))
        assert front_matter(card(many, Statements("x"), []))[3] == f"- {name}"


def test_statements_are_in_their_places(finished):
    said = Statements('A "b" | c', "CC-BY-4.0", "to test", ["A. Nonymous"], "a@b", "https://x")
    text = card(gather(finished[0]), said, [])
    assert 'pretty_name: "A \\"b\\" | c"' in front_matter(text)
    assert 'license: "cc-by-4.0"' in front_matter(text)
    assert NOT_STATED not in text
    assert "to test" in section(text, "Motivation")
    assert "CC-BY-4.0" in section(text, "Distribution")


def test_the_template_is_a_file_of_the_package():
    template = files("qm1b.report.card").joinpath("card.md").read_text(encoding="utf-8")
    assert [line[3:] for line in template.splitlines() if line.startswith("## ")] == [*SECTIONS]


def uses(facts, **settings):
    """The section on uses, good ones and others, if the run had had these settings."""
    manifest = replace(facts.manifest, settings=facts.settings | settings)
    text = section(card(replace(facts, manifest=manifest), Statements("x"), []), "Uses")
    good, bad = text.split("Not good for:")
    return text, good, bad


def test_a_minimal_basis_is_for_pre_training_and_not_for_benchmarks(finished):
    facts = gather(finished[0])
    assert facts.level == "b3lyp5/sto-3g"
    for basis in ("sto-3g", "STO-3G", "sto6g", "minao"):
        text, good, bad = uses(facts, basis=basis)
        assert f"{basis} is a minimal basis" in text
        for word in ("pre-training", "development of methods", "relative trends", "scaling"):
            assert word in good
        for word in ("benchmarks of accuracy", "absolute energies and reaction energies"):
            assert word in bad
            assert word not in good
        assert "anything with diffuse or polarised character" in bad
        assert "testing" not in text
    for basis in ("6-31g*", "sto-3g*", "def2-svp"):
        text, good, bad = uses(facts, basis=basis)
        assert f"{basis} is larger than a minimal basis" in text
        assert f"training and testing of models that are to reproduce b3lyp5/{basis}" in good
        assert "benchmarks of accuracy against experiment or a higher level" in bad
        assert f"functions which {basis} lacks" in bad


def test_limits_of_the_precision(finished):
    facts = gather(finished[0])
    words = "* In float32 the highest virtual orbitals"
    assert words in uses(facts, precision="mixed")[0]
    assert words not in uses(facts, precision="float64")[0]


def audit(folder, **changes):
    """A `verify.json` as of `qm1b verify`."""
    row = {"count": 9, "mae": 0.375, "bias": -0.1, "p50": 0.3, "p95": 1.0, "p99": 1.2, "max": 1.25}
    report = {
        "passed": True, "missed": [], "fingerprint": shards.read_manifest(folder).fingerprint,
        "rows": 2, "seed": 5, "reference": "PySCF 9.9, float64", "sample": [{}] * 9,
        "suspected": 3, "states": {"same": 9, "higher": 0}, "errors": {"energy_mev": row},
        "invariants": {"units": {"count": 0}, "offsets": {"count": 0}},
    }  # fmt: skip
    (folder / "verify.json").write_text(json.dumps(report | changes))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return fake_run(tmp_path_factory.mktemp("card"), "O\n")[0]


def test_the_measured_error_is_that_of_this_dataset(small):
    audit(small)
    text = section(card(gather(small), Statements("x"), []), "Measured error")
    assert "| `energy_mev` | 9 | 0.375 | -0.1 | 0.3 | 1 | 1.2 | 1.25 |" in text
    assert "PySCF 9.9" in text
    assert "Verdict: passed" in text
    audit(small, passed=False, missed=["too bad"], invariants={"units": {"count": 2}})
    text = section(card(gather(small), Statements("x"), []), "Measured error")
    assert "broken: units" in text
    assert "failed: too bad" in text
    for changes in ({"rows": 1}, {"fingerprint": "other"}):
        audit(small, **changes)
        text = section(card(gather(small), Statements("x"), []), "Measured error")
        assert "Not verified in its present state" in text
        assert "0.375" not in text
    (small / "verify.json").write_text("{")
    with pytest.raises(UserError, match="run qm1b verify again"):
        gather(small)
    (small / "verify.json").unlink()


def test_croissant_describes_the_parquet_file(finished, tmp_path):
    path = tmp_path / "data.parquet"
    export(finished[0], path, everything=True)
    said = Statements("x", "CC0-1.0", "", ["A"], "", "https://x")
    found = croissant({"rows": path}, tmp_path, said, "words")
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    (file,) = found["distribution"]
    assert len(file["sha256"]) == 64
    assert file["contentSize"] == f"{path.stat().st_size} B"
    fields = {f["name"]: f for f in found["recordSet"][0]["field"]}
    schema = pq.read_schema(path)
    assert list(fields) == schema.names
    assert fields["energy"]["dataType"] == "sc:Float"
    assert fields["energy"]["description"].endswith("in eV")
    assert fields["converged"]["dataType"] == "sc:Boolean"
    assert fields["smile"]["dataType"] == "sc:Text"
    assert (fields["z"]["dataType"], fields["z"]["repeated"]) == ("sc:Integer", True)
    assert "repeated" not in fields["N"]
    assert all(f["source"]["fileObject"]["@id"] == file["@id"] for f in fields.values())
    bare = croissant({"rows": path}, tmp_path, Statements("x"), "words")
    assert not {"license", "creator"} & set(bare)


def test_the_command(finished, tmp_path, capsys):
    parquet = tmp_path / "data.parquet"
    export(finished[0], parquet)
    out = tmp_path / "card"
    arguments = ["--out", str(out), "--parquet", str(parquet), "--creators", "A", "B"]
    assert main(["card", str(finished[0]), *arguments]) == 0
    printed = capsys.readouterr().out.split()
    assert str(out / "croissant.json") in printed
    text = (out / "README.md").read_text()
    assert "**Who made it?** A, B" in text
    for line in text.splitlines():
        if line.startswith("!["):
            assert (out / line.split("(")[1][:-1]).stat().st_size > 1000
    assert json.loads((out / "croissant.json").read_text())["name"] == finished[0].name
    assert main(["card", str(tmp_path)]) == 2
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(UserError, match="not a whole Parquet file"):
        write(finished[0], out, Statements("x"), tmp_path / "no.parquet")
