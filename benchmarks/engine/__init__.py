"""The engine: accuracy beside PySCF, speed, compilation; in single-threaded processes."""

import os

from benchmarks.pool import SINGLE

os.environ.update(SINGLE)  # before a script imports NumPy and JAX: threads are counted then
