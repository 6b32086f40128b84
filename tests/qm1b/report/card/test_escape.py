"""Nothing in a card is run by what shows it, whatever the dataset, its audit and people say."""

import json
import shutil
from dataclasses import replace

import pytest

from qm1b.errors import UserError
from qm1b.report.card.escape import code, json_text, literal, without_html
from qm1b.report.card.facts import Statements, gather
from qm1b.report.card.text import card

BAD = "</td><script>alert(1)</script>\x1b[2J`x` ![i](http://t) | *b* [l](javascript:x)\n# h"


def test_pieces():
    assert literal("6-31g*, HYB_GGA_XC_B3LYP5 (x)") == "6-31g\\*, HYB_GGA_XC_B3LYP5 (x)"
    assert literal("6-31g*") == "6-31g*"
    assert literal("<b>&`|") == "&lt;b&gt;&amp;&#96;&#124;"
    assert literal("# not a heading") == "\\# not a heading"
    assert code("too_large") == "`too_large`"
    assert code("a`<b>") == "a&#96;&lt;b&gt;"
    assert without_html("see [x](https://x) <i>\nb") == "see [x](https://x) &lt;i&gt; b"
    assert json.loads(json_text({BAD: "```"})) == {BAD: "```"}
    assert not set("<>&`") & set(json_text({BAD: "```"}))


def test_hostile_text_is_shown_and_not_run(finished, tmp_path):
    folder = shutil.copytree(finished[0], tmp_path / "run")
    facts = gather(folder)
    manifest = replace(
        facts.manifest,
        input=replace(facts.manifest.input, name=BAD),
        settings=facts.settings | {"basis": BAD},
        functional_definition=BAD,
    )
    facts.stats.statuses[BAD] = 1
    facts.stats.rungs[BAD] = 1
    facts.stats.labels["embedding"][BAD] = 1
    facts.drops[BAD] = 1
    audit = {
        "fingerprint": manifest.fingerprint, "rows": facts.stats.rows, "passed": False,
        "missed": [BAD], "seed": BAD, "reference": BAD, "sample": [], "suspected": [BAD],
        "states": {BAD: 1}, "errors": {}, "invariants": {BAD: {"count": 1}},
    }  # fmt: skip
    facts = replace(facts, manifest=manifest, notice=BAD, versions={"x": BAD}, audit=audit)
    said = Statements(BAD, BAD, BAD, [BAD], BAD, BAD)
    text = card(facts, said, [])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\n# h" not in text
    assert text.count("\\](http://t)") > 10
    assert text.count("&lt;script&gt;") > 10
    assert text.count("```") == 2


def test_a_strange_audit_is_one_sentence(finished, tmp_path):
    folder = shutil.copytree(finished[0], tmp_path / "run")
    facts = gather(folder)
    this = {"fingerprint": facts.manifest.fingerprint, "rows": facts.stats.rows}
    for audit in ({}, {"fingerprint": 1}, this, this | {"errors": 3, "invariants": []}):
        with pytest.raises(UserError, match="not what qm1b verify writes"):
            card(replace(facts, audit=audit), Statements("x"), [])
    for text in ("[]", "3", "{", "[" * 10**5):
        (folder / "verify.json").write_text(text)
        with pytest.raises(UserError, match="run qm1b verify again"):
            gather(folder)


def test_the_versions_are_those_of_the_shards(finished):
    facts = gather(finished[0])
    lies = replace(facts.manifest, versions={"jax": "99"})
    assert f"| jax | {facts.versions['jax']} |" in card(
        replace(facts, manifest=lies), Statements("x"), []
    )
