"""Measurements of the project; how to run them: README.md."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "notebooks"))  # the package `paper` is there
