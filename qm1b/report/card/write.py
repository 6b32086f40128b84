"""A dataset card with its figures, and Croissant metadata of the files published with it.

These are one Parquet file, or the parts and the sample in a folder for a dataset hub.
"""

import json
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder.shards import VERIFY_PNG
from qm1b.report.card.croissant import croissant, described
from qm1b.report.card.facts import Statements, gather
from qm1b.report.card.text import card, summary
from qm1b.storage import files

CARD = "README.md"
CROISSANT = "croissant.json"
FIGURES = "figures"

DATA, SAMPLE = "data", "sample"
"""Folders of the parts with all rows, and of the sample."""

SAMPLE_FILE = f"{SAMPLE}/{SAMPLE}.parquet"

SPLITS = {"train": "train", "valid": "validation", "test": "test"}
"""What a dataset hub calls the parts of `qm1b split`."""


def write(folder: Path, out: Path, said: Statements, parquet: Path | None = None) -> list[Path]:
    """Write `README.md`, its figures and, for Parquet files, `croissant.json`.

    Args:
        folder: the `--out` of a run.
        out: folder for the card; it is made if it does not exist. The card of a folder for a
            hub describes the files in it.
        said: what only people know.
        parquet: an exported file to be published with the card, or None.

    Raises:
        UserError: no run there, a lost or damaged shard, a damaged `verify.json`, or `out` cannot
            be written.
    """
    from qm1b.report import plots

    facts = gather(folder)
    texts = {}
    tables = tables_in(out)
    if parquet is not None:
        if tables:
            raise UserError(f"{out} is a folder for a hub, of which the card describes all files")
        published, root = {"rows": parquet}, parquet.parent
    else:
        published, root = tables, out
    if published:
        about = croissant(published, root, said, description=summary(facts))
        texts[CROISSANT] = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    figures = [plots.overview(facts.stats.distributions, out / FIGURES)]
    if facts.audit and (folder / VERIFY_PNG).exists():
        picture = (folder / VERIFY_PNG).read_bytes()
        figures.append(out / FIGURES / VERIFY_PNG)
        files.atomic_write(figures[-1], lambda stream: stream.write(picture))
    names = [f"{FIGURES}/{path.name}" for path in figures]
    columns = described(next(iter(tables.values()))) if tables else ()
    splits = {s: SPLITS[s] for s in SPLITS if any(t.startswith(f"part-{s}-") for t in tables)}
    texts[CARD] = card(facts, said, names, columns=columns, splits=splits) + "\n"
    for name, text in texts.items():
        files.write_text(out / name, text)
    return [*(out / name for name in texts), *figures]


def part_name(number: int, split: str = "") -> str:
    """The file of a part, from 0, relative to the folder."""
    return f"{DATA}/part-{split}{'-' if split else ''}{number:05d}.parquet"


def tables_in(folder: Path) -> dict[str, Path]:
    """The Parquet files of a folder for a hub by the name of their record set; else empty."""
    parts = {path.stem: path for path in sorted((folder / DATA).glob("part-*.parquet"))}
    return {SAMPLE: folder / SAMPLE_FILE, **parts} if parts else {}
