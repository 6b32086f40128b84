"""The level of theory and the numerics of a calculation, and the levels of published datasets."""

from pyscf_ipu.settings.keywords import LevelKeywords
from pyscf_ipu.settings.level import Settings, usable
from pyscf_ipu.settings.presets import PRESETS, Preset, preset

__all__ = ["PRESETS", "LevelKeywords", "Preset", "Settings", "preset", "usable"]
