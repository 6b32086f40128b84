"""A dataset card with its figures, and Croissant metadata of the file published with it."""

import json
from pathlib import Path

from qm1b.audit.verify import VERIFY_PNG
from qm1b.card.croissant import croissant
from qm1b.card.facts import Statements, gather
from qm1b.card.text import card, summary
from qm1b.process import files

CARD = "README.md"
CROISSANT = "croissant.json"
FIGURES = "figures"


def write(folder: Path, out: Path, said: Statements, parquet: Path | None = None) -> list[Path]:
    """Write `README.md`, its figures and, for a Parquet file, `croissant.json`.

    Args:
        folder: the `--out` of a run.
        out: folder for the card; it is made if it does not exist.
        said: what only people know.
        parquet: an exported file to be published with the card, or None.

    Raises:
        UserError: no run there, a lost or damaged shard, a damaged `verify.json`, or `out` cannot
            be written.
    """
    from qm1b.report import plots

    facts = gather(folder)
    texts = {}
    if parquet is not None:
        about = croissant(parquet, said, summary(facts))
        texts[CROISSANT] = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    figures = [plots.overview(facts.stats.distributions, out / FIGURES)]
    if facts.audit and (folder / VERIFY_PNG).exists():
        picture = (folder / VERIFY_PNG).read_bytes()
        figures.append(out / FIGURES / VERIFY_PNG)
        files.atomic_write(figures[-1], lambda stream: stream.write(picture))
    texts[CARD] = card(facts, said, [f"{FIGURES}/{path.name}" for path in figures]) + "\n"
    for name, text in texts.items():
        files.write_text(out / name, text)
    return [*(out / name for name in texts), *figures]
