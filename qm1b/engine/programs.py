"""What a run hears of compiled programs, and what one takes."""

from collections.abc import Hashable
from dataclasses import dataclass

PROGRAM_SECONDS = 5.0
"""What a program takes on a core, where no other has been compiled yet; measured for STO-3G."""


@dataclass(frozen=True)
class ProgramEvent:
    """A program is being made on a worker, or is ready there."""

    shape: Hashable
    seconds: float | None = None
    """Time that it took; None while it is being made."""
    cached: bool = False
    """Whether it came from the disk cache."""
    open_shell: bool = False
    """Whether it is the program of two spins."""
    worker: int = 0
    """Number of the worker, which only the calling process knows."""

    @property
    def label(self) -> str:
        """The shape in words."""
        words = str(getattr(self.shape, "label", self.shape))
        return f"open shells, {words}" if self.open_shell else words
