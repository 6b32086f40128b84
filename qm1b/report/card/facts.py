"""The contents of a dataset card: what the dataset itself shows, and what only people know."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.completeness import notice
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.shard_folder import ShardFolder
from qm1b.report.stats import Statistics, collect
from qm1b.rows.schema import Json

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Statements:
    """What only people know about a dataset."""

    name: str
    license: str = ""
    purpose: str = ""
    creators: list[str] = field(default_factory=list)
    contact: str = ""
    url: str = ""


@dataclass(frozen=True)
class Facts:
    """What the dataset itself shows."""

    manifest: Manifest
    status: str
    """Of the run; killed, if it is under way in the manifest alone."""
    stats: Statistics
    drops: Counter[str]
    notice: str
    """What is missing if the run is not complete; else empty."""
    audit: Json | None
    """`verify.json`, if there is one."""
    versions: dict[str, str]
    """Software by package; several versions if shards were computed by several."""

    @property
    def is_verified(self) -> bool:
        """Whether `verify.json` was made from these rows."""
        if self.audit is None:
            return False
        made_from = self.audit["fingerprint"], self.audit["rows"]
        return made_from == (self.manifest.fingerprint, self.stats.rows)

    @property
    def settings(self) -> Json:
        """The settings of the run."""
        return self.manifest.settings

    @property
    def level(self) -> str:
        """Level of theory in short."""
        return f"{self.settings['xc']}/{self.settings['basis']}"


def gather(folder: Path) -> Facts:
    """Read a dataset for its card.

    Raises:
        UserError: no run there, a shard is lost, or a shard or `verify.json` is damaged.
    """
    source = ShardFolder(folder)
    unfinished = notice(source)
    drops, versions = Counter[str](), dict[str, list[str]]()
    for path in source.shards:
        attributes, _, dropped = shards.read_whole(path)
        drops.update(drop.reason for drop in dropped)
        for package, version in json.loads(attributes.get("versions", "{}")).items():
            versions.setdefault(package, []).append(str(version))
    by_package = {package: ", ".join(dict.fromkeys(names)) for package, names in versions.items()}
    path = folder / shards.VERIFY_JSON
    try:
        audit = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read ({error}); run qm1b verify again") from None
    if not isinstance(audit, dict | None):
        raise UserError(f"{path} is not what qm1b verify writes; run qm1b verify again")
    return Facts(
        source.manifest,
        source.status,
        collect(folder),
        drops=drops,
        notice=unfinished,
        audit=audit,
        versions=by_package,
    )
