"""Files and folders that molecules come from; `open_source` finds out which kind one is."""

from .base import Source
from .opening import open_source

__all__ = ["Source", "open_source"]
