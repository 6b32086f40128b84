"""The `pyscf-ipu` command.

`pyscf-ipu info` says what this installation computes with, `pyscf-ipu profile` prices an SCF on a
simulated IPU.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import version

import pyscf_ipu


def main() -> int:
    # XLA's notes on loading a kept program would bury the report.  It looks when it is imported.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from pyscf_ipu.ipu import TileMemoryError, command

    parser = argparse.ArgumentParser(prog="pyscf-ipu", description=pyscf_ipu.__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("info", help="versions, devices, codelets, cache and memory")
    profiling = commands.add_parser("profile", help="price one SCF on a simulated IPU")
    command.add_arguments(profiling)
    args = parser.parse_args()
    try:
        print(command.run(args) if args.command == "profile" else info())
    except (ValueError, TileMemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def info() -> str:
    """Versions, devices, codelets in use, folder of the compiled programs, memory."""
    import jax

    from pyscf_ipu.cache import default_cache_directory
    from pyscf_ipu.codelets import describe
    from pyscf_ipu.memory import available_bytes

    devices = ", ".join(f"{d.platform}:{d.id} ({d.device_kind})" for d in jax.devices())
    rows = {
        "pyscf_ipu": pyscf_ipu.__version__,
        "versions": f"JAX {jax.__version__}, PySCF {version('pyscf')}",
        "devices": devices,
        "codelets": describe(),
        "programs": f"kept by qm1b, and after enable_disk_cache(), in {default_cache_directory()}",
        "memory": f"{available_bytes() / 2**30:.1f} GiB",
    }
    return "\n".join(f"{name:<10} {value}" for name, value in rows.items())
