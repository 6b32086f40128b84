"""A dataset card with its figures, and Croissant metadata of the file published beside it."""

from __future__ import annotations

import json
from pathlib import Path

from . import store
from .croissant import croissant
from .datasheet import card, summary
from .facts import Statements, gather
from .verify import VERIFY_PNG

CARD = "README.md"
CROISSANT = "croissant.json"
FIGURES = "figures"


def write(folder: Path, out: Path, said: Statements, parquet: Path | None = None) -> list[Path]:
    """Write `README.md`, its figures and, for a Parquet file, `croissant.json`.

    Args:
        folder: the `--out` of a run.
        out: folder for the card, made if need be.
        said: what only people know.
        parquet: an exported file that is to be published beside the card; None for none.

    Raises:
        UserError: no run there, a lost or damaged shard, a damaged `verify.json`, or `out` cannot
            be written.
    """
    from . import plots

    facts = gather(folder)
    texts = {}
    if parquet is not None:
        about = croissant(parquet, said.name, summary(facts), said.license, said.url, said.creators)
        texts[CROISSANT] = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    figures = [plots.overview(facts.stats.distributions, out / FIGURES)]
    if facts.audit and (folder / VERIFY_PNG).exists():
        picture = (folder / VERIFY_PNG).read_bytes()
        figures.append(out / FIGURES / VERIFY_PNG)
        store.atomic_write(figures[-1], lambda stream: stream.write(picture))
    texts[CARD] = card(facts, said, [f"{FIGURES}/{path.name}" for path in figures])
    for name, text in texts.items():
        store.write_text(out / name, text)
    return [*(out / name for name in texts), *figures]
