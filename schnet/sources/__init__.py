"""Files and folders of molecules; `open_source` opens one of any kind."""

from schnet.sources.base import Source
from schnet.sources.opening import open_source

__all__ = ["Source", "open_source"]
