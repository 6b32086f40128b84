"""The text of a dataset card: Markdown with YAML front matter, as Datasheets for Datasets ask.

Source of the form: T. Gebru et al., arXiv:1803.09010. What only people know (why, who, under which
licence) comes from them or is "not stated"; everything else is read off the dataset.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from .facts import Facts, Statements
from .markdown import NOT_STATED, table
from .schema import DROP_REASONS, FIELDS
from .theory import level_of_theory


def card(facts: Facts, said: Statements, figures: list[str]) -> str:
    """The whole text; `figures` are paths beside it."""
    parts = [
        _front_matter(facts, said),
        f"# {said.name}\n\n{summary(facts)}",
        _motivation(said),
        _composition(facts),
        level_of_theory(facts),
        _measured_error(facts),
        _collection(facts),
        _preprocessing(facts),
        _distributions(facts, figures),
        _uses(facts),
        _distribution(said),
        _maintenance(facts, said),
    ]
    return "\n\n".join(parts) + "\n"


def summary(facts: Facts) -> str:
    """One sentence on what the dataset is, and one more if the run is not at its end."""
    s = facts.stats
    return (
        f"{s.converged} conformers of {s.molecules} molecules with total energies, orbital "
        "energies, gaps, dipole moments and Mulliken charges by restricted "
        f"{facts.level}, computed with pyscf-ipu."
        f"{' **Not whole**: ' + facts.notice if facts.notice else ''}"
    )


def _front_matter(facts: Facts, said: Statements) -> str:
    sizes = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"))
    sizes += ((1e7, "1M<n<10M"), (1e8, "10M<n<100M"), (1e9, "100M<n<1B"), (1e10, "1B<n<10B"))
    sizes += ((1e11, "10B<n<100B"), (1e12, "100B<n<1T"))
    size = next((name for limit, name in sizes if facts.stats.rows < limit), "n>1T")
    lines = [
        "---",
        f"pretty_name: {json.dumps(said.name)}",  # a JSON string is a YAML string
        f"license: {json.dumps(said.license.lower() or 'unknown')}",
        f"size_categories:\n- {size}",
        "tags:\n- chemistry\n- quantum-chemistry\n- density-functional-theory\n- molecules",
        "---",
    ]
    return "\n".join(lines)


def _motivation(said: Statements) -> str:
    return (
        "## Motivation\n\n"
        f"* **For what purpose was it made?** {said.purpose or NOT_STATED}\n"
        f"* **Who made it?** {', '.join(said.creators) or NOT_STATED}"
    )


def _composition(facts: Facts) -> str:
    s = facts.stats
    elements = ", ".join(f"{name} {n}" for name, n in s.elements.most_common())
    rows = table(("status", "rows"), s.statuses.most_common())
    fields = table(
        ("field", "unit", "meaning"),
        [(f"`{f.name}`", f.unit, f.description) for f in FIELDS],
    )
    return (
        "## Composition\n\n"
        f"A row is one conformer of one molecule. {s.rows} rows of {s.molecules} molecules, "
        f"{s.converged} converged. Converged rows with an element: {elements}.\n\n"
        f"{rows}\n\n"
        "Rows that did not converge are in the HDF5 shards, with their status, and not in an "
        "export without `--all`. There are no people and no personal data in it.\n\n"
        f"{fields}"
    )


def _measured_error(facts: Facts) -> str:
    title = "## Measured error\n\n"
    audit = facts.audit
    if audit is None:
        return f"{title}Not verified yet: run `qm1b verify DIR` and make the card again."
    found = (audit["fingerprint"], audit["rows"])
    here = (facts.manifest["fingerprint"], facts.stats.rows)
    if found != here:
        return (
            f"{title}Not verified as it is: `verify.json` is of fingerprint {found[0]} with "
            f"{found[1]} rows, this is {here[0]} with {here[1]}. Run `qm1b verify DIR` and make "
            "the card again."
        )
    names = ("mae", "bias", "p50", "p95", "p99", "max")
    rows = [
        (f"`{name}`", e["count"], *(f"{e[key]:.3g}" for key in names))
        for name, e in audit["errors"].items()
    ]
    header = ("quantity", "rows", "mean abs.", "bias", "median", "95 %", "99 %", "max")
    states = ", ".join(f"{n} {state}" for state, n in audit["states"].items() if n)
    broken = [name for name, v in audit["invariants"].items() if v["count"]]
    return (
        f"{title}{len(audit['sample'])} random rows against {audit['reference']}, at the same "
        f"level and geometry (seed {audit['seed']}); absolute errors, dataset minus reference. "
        f"SCF states: {states}.\n\n"
        f"{table(header, rows)}\n\n"
        f"Invariants of all rows broken: {', '.join(broken) or 'none'}. Energy outliers among the "
        f"conformers of a molecule: {audit['suspected']}. Verdict: "
        f"{'passed' if audit['passed'] else 'failed: ' + '; '.join(audit['missed'])}."
    )


def _collection(facts: Facts) -> str:
    source, s = facts.manifest["input"], facts.settings
    rows = [(f"`{r}`", n, DROP_REASONS.get(r, "")) for r, n in facts.drops.most_common()]
    dropped = table(("reason", "lines", "meaning"), rows) if rows else "No line was dropped."
    return (
        "## Collection process\n\n"
        f"Input: `{source['name']}`, {source['lines']} lines, SHA-256 `{source['sha256']}`"
        f"{'' if s.get('limit') is None else ', of which the first ' + str(s['limit'])}. "
        "Conformers that were not given with the input are RDKit's (ETKDGv3), "
        f"{s['conformers']} asked for each molecule, seeded by the run's seed ({s['seed']}) and "
        f"the canonical SMILES. {_geometries(facts)}\n\n"
        "Every line of the input is in the rows or was dropped with a reason:\n\n"
        f"{dropped}"
    )


def _geometries(facts: Facts) -> str:
    """How the geometries came to be, as the rows say."""
    words = []
    for name, title in (("embedding", "Embedding"), ("relaxation", "Relaxation")):
        counts = facts.stats.labels.get(name, Counter())
        if counts:
            words.append(f"{title}: {', '.join(f'{k} {n}' for k, n in counts.most_common())} rows.")
    if facts.settings.get("rattle_angstrom"):
        sigma = facts.settings["rattle_angstrom"]
        words.append(f"Then every coordinate took a random step, standard deviation {sigma} Å.")
    return " ".join(words)


def _preprocessing(facts: Facts) -> str:
    return (
        "## Preprocessing, cleaning, labelling\n\n"
        "SMILES are canonical, without isotope labels and atom maps. Positions were rounded to "
        "float32 before anything was computed from them. Rows are in the order of the input. The "
        f"run's status is {facts.manifest.get('status', NOT_STATED)}, its fingerprint "
        f"`{facts.manifest['fingerprint']}`. All settings:\n\n"
        f"```json\n{json.dumps(dict(facts.settings), indent=1)}\n```"
    )


def _distributions(facts: Facts, figures: list[str]) -> str:
    rows = [
        (f"`{d.name}`", *(f"{v:.4g}" for v in (d.mean, d.std, d.least, d.most)))
        for d in facts.stats.distributions
    ]
    pictures = "\n".join(f"![{Path(name).stem}]({name})" for name in figures)
    header = ("converged rows", "mean", "std", "min", "max")
    return f"## Distributions\n\n{table(header, rows)}\n\n{pictures}"


def _uses(facts: Facts) -> str:
    limits = [
        f"Labels are those of {facts.level}, whose errors against experiment are far larger than "
        "the numerical ones above.",
        "Geometries are not minima of this level; energies include their strain.",
        "Closed shells only: no radicals, no open-shell ions, no excited states.",
        "Gaps are differences of orbital energies, not excitation energies.",
    ]
    if facts.settings["basis"].lower() == "sto-3g":
        limits.append("A minimal basis is for the development of methods, not for prediction.")
    if facts.settings["precision"] != "float64":
        limits.append("In float32 the highest virtual orbitals of larger bases are less accurate.")
    return (
        "## Uses\n\n"
        "Training and testing of models of molecular properties, as QM1B "
        "(arXiv:2311.01135), with splits by molecule (`qm1b split`). Limits:\n\n"
        + "\n".join(f"* {text}" for text in limits)
    )


def _distribution(said: Statements) -> str:
    return (
        "## Distribution\n\n"
        f"* **Licence**: {said.license or NOT_STATED}. The licence of the input molecules applies "
        "to their SMILES.\n"
        f"* **Where**: {said.url or NOT_STATED}"
    )


def _maintenance(facts: Facts, said: Statements) -> str:
    return (
        "## Maintenance\n\n"
        f"* **Contact**: {said.contact or NOT_STATED}\n"
        "* **Can it be made again?** The same input, settings, versions and kind of "
        "processor give the same rows."
    )
