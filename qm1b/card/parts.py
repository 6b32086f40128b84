"""The files of a folder for a dataset hub: where they are, and what the card says of them."""

from pathlib import Path

DATA, SAMPLE = "data", "sample"
"""Folders of the parts with all rows, and of the sample."""

SAMPLE_FILE = f"{SAMPLE}/{SAMPLE}.parquet"

CONFIGS = f"""configs:
- config_name: default
  default: true
  data_files: {DATA}/*.parquet
- config_name: {SAMPLE}
  data_files: {SAMPLE_FILE}
"""
"""Front matter of the card: what `datasets.load_dataset` reads by default, and by name."""


def part_name(number: int) -> str:
    """The file of a part, from 0, relative to the folder."""
    return f"{DATA}/part-{number:05d}.parquet"


def tables(folder: Path) -> dict[str, Path]:
    """The Parquet files of a folder for a hub by the name of their record set; else empty."""
    found = {path.stem: path for path in sorted((folder / DATA).glob("part-*.parquet"))}
    return {SAMPLE: folder / SAMPLE_FILE, **found} if found else {}
