"""The `nanodft` command: options, and how it may end.  What it prints: `nanodft_table`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Nanodft:
    """Restricted Kohn-Sham DFT of a small molecule, one line per SCF cycle."""

    molecule: tyro.conf.Positional[str]
    """A name such as benzene, or "O 0 0 0; H 0 0 1; H 0 1 0" in Angstrom."""
    basis: str = "sto-3g"
    """A PySCF basis-set name with s, p and d shells."""
    xc: str = "b3lyp"
    """hf, lda, pbe, pbe0, blyp, b3lyp or b3lyp5."""
    charge: int = 0
    """Total charge in units of e."""
    grid_level: int = 0
    """PySCF's integration grids, 0 (coarse) to 9."""
    precision: str = "float64"
    """float64 or float32."""
    integrals: str = "engine"
    """Where integrals come from: engine (this package) or pyscf."""
    max_cycles: int = 50
    """SCF cycles at most."""
    compare: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also compute with PySCF, and print every cycle's error."""
    forces: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also print the forces (they compile for a minute or more with integrals=engine)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0, or 2 after one sentence on stderr."""
    args = tyro.cli(Nanodft, prog="nanodft", args=arguments)
    # Before NumPy is imported: matrices so small make threads wait for each other.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's notes on kept programs
    from pyscf_ipu.errors import ConvergenceError
    from pyscf_ipu.nanodft_table import run

    try:
        run(args)
    except (ValueError, ConvergenceError) as error:
        print(f"nanodft: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("nanodft: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
