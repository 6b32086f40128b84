"""The text of a dataset card: the templates beside this file, filled in from a dataset.

The form is that of Datasheets for Datasets (T. Gebru et al., arXiv:1803.09010), in Markdown with
YAML front matter. What only people know (why, who, under which licence) comes from them or is "not
stated"; everything else is read from the dataset.  Every text that a template shows is escaped,
unless the template says `safe`.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined, UndefinedError
from markupsafe import Markup

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.elements.cartesian import in_words
from pyscf_ipu.xc.suffixes.names import without_suffix
from qm1b.errors import UserError
from qm1b.report.card.escape import code, json_text, literal, without_html
from qm1b.report.card.facts import NOT_STATED, Facts, Statements
from qm1b.report.card.level import of_level
from qm1b.report.card.worth import of_labels
from qm1b.report.stats import counts
from qm1b.rows.schema import DROP_REASONS, fields_of

Described = tuple[str, str, str]
"""A field or column: name, unit, meaning."""


def card(
    facts: Facts,
    statements: Statements,
    figures: Sequence[str],
    columns: Sequence[Described] = (),
    splits: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The whole text.

    Args:
        facts: of the dataset.
        statements: what only people know.
        figures: paths relative to the card.
        columns: those of the published files; without them the fields of the shards.
        splits: the parts of a published dataset, and what a hub calls them.
    """
    return _filled(
        "card.md",
        facts,
        statements=statements,
        figures=[Path(name) for name in figures],
        splits=splits,
        columns=columns or [(f.name, f.unit, f.text) for f in fields_of(facts.settings)],
        published=bool(columns),
        size=_size(facts.stats.rows),
        method="Hartree-Fock" if without_suffix(facts.settings["xc"]) == "hf" else "Kohn-Sham",
        measured=_measured(facts),
        minimal=re.fullmatch(r"sto-?\dg|minao", facts.settings["basis"].lower()) is not None,
        **of_level(facts),
    )


def summary(facts: Facts) -> str:
    """One sentence on the dataset, and one more if its run is not complete."""
    return _filled("summary.md", facts)


@cache
def _templates() -> Environment:
    """The templates of this folder, and what they call."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "code": lambda text: Markup(code(text)),
        "json": lambda value, indent=None: Markup(json_text(value, indent)),
        "stated": lambda text: Markup(without_html(text) or NOT_STATED),
        "cell": lambda text: Markup(text.replace("|", "\\|")),
        "counted": lambda number, thing: Markup(counted(number, thing)),
        "digits": lambda number, digits: Markup(f"{number:.{digits}g}"),
    }
    templates.globals |= {
        "counts": counts,
        "in_words": in_words,
        "DROP_REASONS": DROP_REASONS,
    }
    return templates


def _shown(value: object) -> object:
    """A value as a template shows it: escaped, if it is neither a number nor Markdown of ours."""
    return value if isinstance(value, int | float | Markup | Undefined) else literal(value)


def _filled(template: str, facts: Facts, **values: object) -> str:
    """A template, filled in from the facts and the values given by name."""
    values |= {"facts": facts, "stats": facts.stats, "manifest": facts.manifest}
    return _templates().get_template(template).render(settings=facts.settings, **values)


def _size(rows: int) -> str:
    """The class of a number of rows, as dataset hubs name it."""
    names = [f"{n}{unit}" for unit in "KMBT" for n in (1, 10, 100)][:10]
    place = bisect_right([10**n for n in range(3, 13)], rows)
    if place == 0:
        return f"n<{names[0]}"
    return f"n>{names[-1]}" if place == 10 else f"{names[place - 1]}<n<{names[place]}"


def _measured(facts: Facts) -> str:
    """The errors in `verify.json`, if it was made from these rows."""
    try:
        text = _filled("measured.md", facts, audit=facts.audit, worth=of_labels(facts))
        return text.rstrip("\n")
    except (AttributeError, LookupError, TypeError, UndefinedError, ValueError) as error:
        raise UserError(
            f"verify.json is not what qm1b verify writes ({type(error).__name__}: {error}); run "
            "qm1b verify again"
        ) from None
