"""What a dataset card is made of: what the dataset says, and what only people know."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import store
from .completeness import notice
from .errors import UserError
from .reading import Folder
from .stats import Stats, collect
from .verify import VERIFY_JSON


@dataclass(frozen=True)
class Statements:
    """What only people know of a dataset."""

    name: str
    license: str = ""
    purpose: str = ""
    creators: list[str] = field(default_factory=list)
    contact: str = ""
    url: str = ""


@dataclass(frozen=True)
class Facts:
    """What the dataset itself says."""

    manifest: Mapping[str, Any]
    stats: Stats
    drops: Counter[str]
    notice: str
    """What is missing, if the run is not complete; else empty."""
    audit: Mapping[str, Any] | None
    """`verify.json`, if there is one."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the run."""
        return self.manifest["settings"]

    @property
    def level(self) -> str:
        """Level of theory in short."""
        s = self.settings
        return f"{s['xc']}/{s['basis']}"


def gather(folder: Path) -> Facts:
    """Read a dataset for its card.

    Raises:
        UserError: no run there, a shard is lost, or a shard or `verify.json` is damaged.
    """
    source = Folder(folder)
    unfinished = notice(source)
    drops = Counter(d.reason for path in source.shards for d in store.read_drops(path))
    path = folder / VERIFY_JSON
    try:
        audit = json.loads(path.read_text()) if path.exists() else None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); run qm1b verify again.") from None
    return Facts(source.metadata, collect(folder), drops, unfinished, audit)
