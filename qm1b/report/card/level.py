"""What a card's table on the level of theory says, as the dataset states it."""

from dataclasses import asdict

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.elements.auxiliary.choice import auxiliary_set
from pyscf_ipu.settings import Settings
from pyscf_ipu.settings.choices import FORMS
from pyscf_ipu.settings.presets import PRESETS, name_of
from pyscf_ipu.xc.registry import functional
from qm1b.engine.ladder import LADDER
from qm1b.errors import UserError
from qm1b.report.card.facts import Facts
from qm1b.rows.schema import Json

_PRECISIONS = {
    "float32": "float32 throughout",
    "mixed": "float32, with one final energy in float64",
    "float64": "float64 throughout",
}


def of_level(facts: Facts) -> Json:
    """The values of the table, by their names in the template."""
    level = facts.manifest.level
    return {
        "level": level,
        "PRESETS": PRESETS,
        "preset": name_of(asdict(level)),
        "free_atoms": facts.manifest.free_atom_energies_hartree,
        "precision": _precision(facts),
        "repulsion": _repulsion(level),
        "machine": _machine(facts.settings),
        "price": _price(facts),
    }


def _precision(facts: Facts) -> str:
    """The run's precision, and how many rows have another one; see `ladder.Rung.precision`."""
    usual, rungs = str(facts.settings["precision"]), facts.stats.rungs
    other = [
        f"{counted(rungs[r.name], 'row')} of the retry ladder's `{r.name}` in {r.precision} "
        "throughout"
        for r in LADDER
        if r.precision not in (None, usual) and rungs[r.name]
    ]
    text = _PRECISIONS.get(usual, usual)
    return f"{text.removesuffix(' throughout')}, but {', '.join(other)}" if other else text


def _repulsion(level: Settings) -> str:
    """How electron repulsion was computed, and by which auxiliary set."""
    if level.jk == "exact":
        return "all integrals"
    named = auxiliary_set(level.basis, functional(level.xc).pyscf_name)
    what = FORMS[level.jk].removeprefix(", ")
    return f"{what}, by {named or 'the auxiliary set that PySCF takes by default'}"


def _machine(settings: Json) -> str:
    """What computed the rows, if it is a simulated machine."""
    if "machine" not in settings:
        return ""
    vertices = ", with all its vertices run" if "run_vertices" in settings else ""
    return f"the program of a simulated IPU, {settings['machine']}{vertices}"


def _price(facts: Facts) -> Json:
    """What the rows would have cost on an IPU, if a run has priced them."""
    prices = [run["ipu_price"] for run in facts.manifest.runs if "ipu_price" in run]
    if not prices:
        return {}
    try:
        price = prices[-1]
        seconds = {end: float(price["ipu_seconds"][end]) for end in ("low", "high")}
        return {"rows": int(price["rows"]), "target": str(price["target"]), **seconds}
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"the manifest is damaged: a run's ipu_price ({error})") from None
