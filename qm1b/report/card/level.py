"""The rows of a card's table on the level of theory, as the dataset states it."""

from dataclasses import asdict

from pyscf_ipu.settings.presets import PRESETS, name_of
from qm1b.engine.ladder import LADDER
from qm1b.errors import UserError
from qm1b.report.card.escape import literal
from qm1b.report.card.facts import NOT_STATED, Facts
from qm1b.rows.schema import Json

_PRECISIONS = {
    "float32": "float32 throughout",
    "mixed": "float32, with one final energy in float64",
    "float64": "float64 throughout",
}


def preset(facts: Facts) -> str:
    """A line on the published dataset whose level this is; nothing if it is of none."""
    level = asdict(facts.manifest.level)
    if (name := name_of(level)) is None or level["jk"] != "exact":
        return ""
    found = PRESETS[name]
    return f"| preset | `{name}`, the level of {found.dataset} ({found.source}) |\n"


def grid(facts: Facts) -> str:
    """The integration grid in words."""
    level = facts.manifest.level
    turned = " before its pruning: Gill's radii, equal cells, spheres along the principal axes"
    kind = ", PySCF's, with NWChem's pruning" if level.prune else ""
    return level.grid_in_words + (turned if level.grid_kind == "gaussian" else kind)


def precision(facts: Facts) -> str:
    """The run's precision, and how many rows have another one; see `ladder.Rung.precision`."""
    own, rungs = str(facts.settings["precision"]), facts.stats.rungs
    other = [
        f"{rungs[r.name]} rows of the retry ladder's `{r.name}` in {r.precision} throughout"
        for r in LADDER
        if r.precision not in (None, own) and rungs[r.name]
    ]
    text = _PRECISIONS.get(own, own)
    return f"{text.removesuffix(' throughout')}, but {', '.join(other)}" if other else text


def cycles(settings: Json) -> str:
    """How many cycles there are, and whether the rows have each of them."""
    fixed, most = settings.get("fixed_cycles"), settings["max_cycles"]
    shifted = "as many with a level shift; a small gap has up to four starts"
    number = f"exactly {fixed}" if fixed else f"at most {most} per start, and {shifted}"
    kept = "; energy, commutator and gap of each are kept" if settings.get("history") else ""
    return number + kept


def free_atoms(facts: Facts) -> str:
    """The energies of the free atoms of the elements that the rows have."""
    energies = facts.manifest.free_atom_energies_hartree
    shown = [f"{s} {energies[s]:.6f}" for s in sorted(facts.stats.elements) if s in energies]
    return f"{', '.join(shown)} hartree" if shown else NOT_STATED


def ipu_price(facts: Facts) -> str:
    """A line on what the rows would have cost on an IPU, if a run has priced them; else nothing."""
    found = [run["ipu_price"] for run in facts.manifest.runs if "ipu_price" in run]
    if not found:
        return ""
    try:
        price = found[-1]
        seconds = [float(price["ipu_seconds"][end]) for end in ("low", "high")]
        rows, target = int(price["rows"]), literal(str(price["target"]))
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"the manifest is damaged: a run's ipu_price ({error})") from None
    low, high = (f"{s:.3g}" for s in seconds)
    return f"| on a simulated IPU ({target}) | {rows} rows in {low} to {high} IPU-seconds |\n"
