"""The section of a dataset card on how its numbers were computed."""

from __future__ import annotations

from .facts import Facts
from .ladder import LADDER
from .markdown import NOT_STATED, table

_PRECISIONS = {
    "float32": "float32 throughout",
    "mixed": "float32, with one final energy in float64",
    "float64": "float64 throughout",
}


def level_of_theory(facts: Facts) -> str:
    """Method, functional, basis, grid, precision and versions."""
    s = facts.settings
    rows = [
        ("method", "restricted Hartree-Fock" if s["xc"] == "hf" else "restricted Kohn-Sham"),
        ("functional", f"{s['xc']}: {facts.manifest['functional_definition']}"),
        ("basis", f"{s['basis']}, {'cartesian' if s.get('cart') else 'spherical'} functions"),
        ("integration grid", f"PySCF's level {s['grid_level']}, NWChem pruning"),
        ("precision", _precision(facts)),
        ("SCF cycles", f"at most {s['max_cycles']} an attempt"),
        ("attempts", _attempts(facts)),
    ]
    versions = table(("package", "version"), sorted(facts.manifest["versions"].items()))
    return f"## Level of theory\n\n{table(('', ''), rows)}\n\n{versions}"


def _precision(facts: Facts) -> str:
    """The run's, and how many rows are of another: see `ladder.Rung.precision`."""
    own = str(facts.settings["precision"])
    other = [
        f"{facts.stats.rungs[rung.name]} rows of the retry ladder's `{rung.name}` in "
        f"{rung.precision} throughout"
        for rung in LADDER
        if rung.precision not in (None, own) and facts.stats.rungs[rung.name]
    ]
    text = _PRECISIONS.get(own, own)
    return f"{text.removesuffix(' throughout')}, but {', '.join(other)}" if other else text


def _attempts(facts: Facts) -> str:
    """Which attempts the converged rows are of."""
    counts = facts.stats.rungs.most_common()
    return ", ".join(f"`{name}` {n} rows" for name, n in counts) or NOT_STATED
