"""The text of a dataset card: the template `card.md`, filled in from a dataset.

The form is that of Datasheets for Datasets (T. Gebru et al., arXiv:1803.09010), in Markdown with
YAML front matter. What only people know (why, who, under which licence) comes from them or is "not
stated"; everything else is read from the dataset.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from pyscf_ipu.elements.cartesian import in_words
from pyscf_ipu.xc.suffixes.names import without_suffix
from qm1b.errors import UserError
from qm1b.folder.manifest.manifest import Manifest
from qm1b.report.card import level
from qm1b.report.card.escape import all_literal, code, json_text, literal, without_html
from qm1b.report.card.facts import NOT_STATED, Facts, Statements
from qm1b.report.stats import counts
from qm1b.rows.schema import DROP_REASONS, Json, fields_of

_ERRORS = ("mae", "bias", "p50", "p95", "p99", "max")


Described = tuple[str, str, str]
"""A field or column: name, unit, meaning."""


def card(
    facts: Facts,
    said: Statements,
    figures: Sequence[str],
    configs: str = "",
    columns: Sequence[Described] = (),
) -> str:
    """The whole text.

    Args:
        facts: of the dataset.
        said: what only people know.
        figures: paths relative to the card.
        configs: lines of the front matter.
        columns: those of the published files; without them the fields of the shards.
    """
    shards = [(f.name, f.unit, f.text) for f in fields_of(facts.settings)]
    settings, stats, limit = facts.settings, facts.stats, facts.settings.get("limit")
    told = {k: v for k, v in asdict(said).items() if k != "creators"}
    stated = {name: without_html(value) or NOT_STATED for name, value in told.items()}
    stated["creators"] = ", ".join(map(without_html, said.creators)) or NOT_STATED
    drops = [(code(r), n, DROP_REASONS.get(r, "")) for r, n in facts.drops.most_common()]
    texts = [(literal(status), n) for status, n in stats.statuses.most_common()]
    versions = [(literal(k), literal(v)) for k, v in sorted(facts.versions.items())]
    distributions = [
        (f"`{d.name}`", *(f"{v:.4g}" for v in (d.mean, d.std, d.least, d.most)))
        for d in stats.distributions
    ]
    return _filled(
        "card",
        facts,
        name=json_text(said.name),  # a JSON string is a YAML string
        license=json_text(said.license.lower() or "unknown"),
        size=_size(stats.rows),
        configs=configs,
        said=stated,
        summary=summary(facts),
        elements=counts(stats.elements),
        statuses=table(("status", "rows"), texts),
        where=_parts()["published" if columns else "shards"],
        fields=table(
            ("column" if columns else "field", "unit", "meaning"),
            [(f"`{name}`", unit, meaning) for name, unit, meaning in columns or shards],
        ),
        method="Hartree-Fock" if without_suffix(settings["xc"]) == "hf" else "Kohn-Sham",
        functions=in_words(settings.get("cart", False)),
        grid=level.grid(facts),
        free_atoms=level.free_atoms(facts),
        precision=level.precision(facts),
        forces="on every atom, -dE/dR" if settings.get("forces") else "none",
        cycles=level.cycles(settings),
        ipu_price=level.ipu_price(facts),
        preset=level.preset(facts),
        attempts=", ".join(f"{code(k)} {n} rows" for k, n in stats.rungs.most_common())
        or NOT_STATED,
        versions=table(("package", "version"), versions),
        input_name=code(facts.manifest.input.name),
        measured=_measured(facts),
        first_lines="" if limit is None else f", of which the first {limit}",
        geometries=_geometries(facts),
        dropped=table(("reason", "lines", "meaning"), drops) if drops else "No line was dropped.",
        status=facts.status or NOT_STATED,
        all_settings=json_text(dict(settings), indent=1),
        distributions=table(("converged rows", "mean", "std", "min", "max"), distributions),
        figures="\n".join(f"![{Path(name).stem}]({name})" for name in figures),
        uses=_filled("minimal_basis" if _is_minimal(settings["basis"]) else "larger_basis", facts),
        float32="" if settings["precision"] == "float64" else f"\n{_filled('float32', facts)}",
    )


def summary(facts: Facts) -> str:
    """One sentence on the dataset, and one more if its run is not complete."""
    words = f" **Incomplete**: {literal(facts.notice)}." if facts.notice else ""
    return _filled("summary", facts, notice=words)


def table(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])


@cache
def _parts() -> dict[str, str]:
    """The parts of the template by name."""
    text = files("qm1b.report.card").joinpath("card.md").read_text(encoding="utf-8")
    _, *found = re.split(r"^<!-- (\w+) -->$", text, flags=re.MULTILINE)
    return {name: part.strip() for name, part in zip(found[::2], found[1::2], strict=True)}


def _filled(part: str, facts: Facts, **values: object) -> str:
    """A part of the template, filled in from the facts and the values given by name."""
    labels = ", forces" if facts.settings.get("forces") else ""
    values |= {"stats": facts.stats, "level": literal(facts.level), "with_forces": labels}
    values |= {"settings": all_literal(facts.settings), "manifest": _Shown(facts.manifest)}
    return _parts()[part].format(**values)


@dataclass(frozen=True)
class _Shown:
    """The texts of a manifest as the template shows them."""

    manifest: Manifest

    @property
    def functional_definition(self) -> str:
        return literal(self.manifest.functional_definition)

    @property
    def fingerprint(self) -> str:
        return literal(self.manifest.fingerprint)

    @property
    def lines(self) -> int:
        return self.manifest.input.lines

    @property
    def sha256(self) -> str:
        return literal(self.manifest.input.sha256)


def _size(rows: int) -> str:
    """The class of a number of rows, as dataset hubs name it."""
    names = [f"{n}{unit}" for unit in "KMBT" for n in (1, 10, 100)][:10]
    place = bisect_right([10**n for n in range(3, 13)], rows)
    if place == 0:
        return f"n<{names[0]}"
    return f"n>{names[-1]}" if place == 10 else f"{names[place - 1]}<n<{names[place]}"


def _is_minimal(basis: str) -> bool:
    return re.fullmatch(r"sto-?\dg|minao", basis.lower()) is not None


def _measured(facts: Facts) -> str:
    """The errors in `verify.json`, if it was made from these rows."""
    if facts.audit is None:
        return _filled("not_verified", facts)
    try:
        return _errors(facts, all_literal(facts.audit))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(
            f"verify.json is not what qm1b verify writes ({type(error).__name__}: {error}); run "
            "qm1b verify again"
        ) from None


def _errors(facts: Facts, audit: Json) -> str:
    if (audit["fingerprint"], audit["rows"]) != (facts.manifest.fingerprint, facts.stats.rows):
        return _filled("verified_before", facts, audit=audit)
    header = ("quantity", "rows", "mean abs.", "bias", "median", "95 %", "99 %", "max")
    errors = [
        (f"`{name}`", e["count"], *(f"{e[key]:.3g}" for key in _ERRORS))
        for name, e in audit["errors"].items()
    ]
    broken = [name for name, v in audit["invariants"].items() if v["count"]]
    return _filled(
        "verified",
        facts,
        audit=audit,
        sampled=len(audit["sample"]),
        states=", ".join(f"{n} {state}" for state, n in audit["states"].items() if n),
        errors=table(header, errors),
        broken=", ".join(broken) or "none",
        verdict="passed" if audit["passed"] else f"failed: {'; '.join(audit['missed'])}",
    )


def _geometries(facts: Facts) -> str:
    """The origin of the geometries, as the rows state it."""
    words = [
        f"{name.capitalize()}: {literal(counts(facts.stats.labels[name]))} rows."
        for name in ("embedding", "relaxation")
        if facts.stats.labels.get(name)
    ]
    if facts.settings.get("rattle_angstrom"):
        sigma = facts.settings["rattle_angstrom"]
        words.append(
            f"Then a random step (standard deviation {sigma} Å) displaced every coordinate."
        )
    return " ".join(words)
