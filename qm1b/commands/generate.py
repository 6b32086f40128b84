"""`qm1b generate`: SMILES in, a folder of shards out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from ..errors import UserError
from ..presets import PRESETS, RunSettings
from .calling import EXIT_INTERRUPTED, this_command

SAMPLE = Path(__file__).parent.parent / "data" / "gdb11_sample.smi"
FIRST_ROWS = 8


@dataclass(frozen=True)
class Generate:
    """Compute a dataset from a file of SMILES."""

    smiles_file: tyro.conf.Positional[Path] = SAMPLE
    """SMILES, one a line: .smi, .smi.gz, or GDB with trailing columns."""
    out: Path | None = None
    """New folder for the dataset; if not given, data/NAME of the input, numbered if it exists."""
    conformers: int = 4
    """Conformers for each molecule."""
    seed: int = 0
    """Seed of the conformers; the same seed gives the same rows."""
    preset: str = "qm1b"
    """Level of theory. qm1b: B3LYP with VWN5 (b3lyp5), STO-3G, grid level 0, float32."""
    basis: str | None = None
    """Basis set instead of the preset's."""
    xc: str | None = None
    """hf, lda, pbe, blyp, b3lyp, b3lyp5 or pbe0 instead of the preset's functional."""
    grid_level: int | None = None
    """Integration grid, 0 to 9, instead of the preset's."""
    precision: str | None = None
    """float32, mixed (float32, with the final energy in float64) or float64 instead of the
    preset's."""
    limit: int | None = None
    """Read only the first N lines."""
    max_aos: int = 128
    """Drop molecules with more atomic orbitals (too_large)."""
    keep_charged: bool = False
    """Keep closed-shell ions; QM1B is neutral."""
    embed_timeout: float = 60.0
    """Seconds that RDKit may take for one molecule."""
    workers: int = 0
    """Compute processes; 0 for one a core."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from rich.console import Console

        from ..generate import Run, generate
        from ..progress import display_for

        settings = run_settings(self)
        out = self.out or _free_folder(self.smiles_file)
        console = Console()
        run = Run(self.smiles_file, out, settings, self.workers)
        summary = generate(run, display_for(console))
        stats = summary.stats
        not_cached = [event for event in stats.compiles if not event.cached]
        dropped = ", ".join(f"{n} {reason}" for reason, n in stats.drops.most_common()) or "none"
        print(
            f"{stats.rows} conformers of {stats.molecules} molecules in {stats.seconds:.0f} s "
            f"({stats.rows / max(stats.seconds, 1e-3):.1f}/s, compiling included), "
            f"{stats.not_converged} not converged\n"
            f"dropped: {dropped}\n"
            f"programs: {len(not_cached)} compiled in "
            f"{sum(event.seconds or 0.0 for event in not_cached):.0f} s (all workers together), "
            f"{len(stats.compiles) - len(not_cached)} loaded from the disk cache\n"
        )
        _print_first_rows(out)
        print(f"\nThe data lies in {out} (dropped.csv there says what was left out and why).")
        if summary.interrupted:
            print("Interrupted: what was finished is there; lines not finished are in dropped.csv.")
            return EXIT_INTERRUPTED
        if stats.rows:
            print(f"As one table: {this_command()} export {out} {out}.parquet")
        return 0


def run_settings(command: Generate) -> RunSettings:
    """The settings of a run: the preset, overridden by the flags that were given.

    Raises:
        UserError: a number is out of range, or there is no such preset.
    """
    allowed = {
        "conformers": (command.conformers, 1),
        "max-aos": (command.max_aos, 1),
        "limit": (command.limit or (1 if command.limit is None else 0), 1),
        "seed": (command.seed, 0),
        "workers": (command.workers, 0),
        "embed-timeout": (command.embed_timeout, 1),
    }
    for name, (value, least) in allowed.items():
        if value < least:
            raise UserError(f"--{name} is {value}: it must be at least {least}.")
    if command.preset not in PRESETS:
        raise UserError(f"unknown preset {command.preset!r}: use {' or '.join(PRESETS)}.")
    flags = {
        "basis": command.basis,
        "xc": command.xc,
        "grid_level": command.grid_level,
        "precision": command.precision,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    return RunSettings(
        level=replace(PRESETS[command.preset], **given),  # type: ignore[arg-type]
        conformers=command.conformers,
        seed=command.seed,
        max_aos=command.max_aos,
        limit=command.limit,
        keep_charged=command.keep_charged,
        embed_timeout=command.embed_timeout,
    )


def _free_folder(source: Path) -> Path:
    """data/NAME, or data/NAME-2 and so on: without --out a run never meets an older one."""
    name = source.name.removesuffix(".gz").removesuffix(".smi") or "run"
    folder = Path("data") / name
    for number in range(2, 10_000):
        if not folder.exists():
            break
        folder = Path("data") / f"{name}-{number}"
    return folder


def _print_first_rows(folder: Path) -> None:
    """The first rows of a dataset, as a table."""
    import pandas as pd

    from pyscf_ipu.units import HARTREE_TO_EV

    from .. import store

    for path in store.shards(folder):
        shard = store.read_shard(path)
        if len(shard["line"]) == 0:
            continue
        table = pd.DataFrame(
            {
                "smiles": shard["smiles"],
                "conformer": shard["conformer"],
                "N": shard["n_ao"],
                "energy [eV]": shard["energy"] * HARTREE_TO_EV,
                "homo [eV]": shard["homo"] * HARTREE_TO_EV,
                "lumo [eV]": shard["lumo"] * HARTREE_TO_EV,
                "gap [eV]": (shard["lumo"] - shard["homo"]) * HARTREE_TO_EV,
                "status": shard["status"],
            }
        )
        print(table.head(FIRST_ROWS).to_string(index=False, float_format="{:.4f}".format))
        return
    print("There are no rows: every line was dropped.")
