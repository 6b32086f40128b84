"""A user's errors: every message says what was wrong, what is allowed and what to do."""


class UsageError(ValueError):
    """An argument, an option or a file cannot be used; commands print the message alone."""


class InvalidMolecule(UsageError):
    """The molecule cannot be computed by a restricted (closed-shell) calculation."""


class TooLarge(InvalidMolecule):
    """The molecule needs more memory than this machine has."""


class UnknownBasis(UsageError):
    """The basis set is not offered, or has no functions for an element of the molecule."""


class NoSuchTile(UsageError):
    """The program uses a tile that the simulated IPU does not have."""


class UnknownEquation(UsageError):
    """This version of JAX writes programs in a way that the simulated IPU does not know."""


class WrongOption(Exception):
    """A UsageError by an option of a command: tyro would take a ValueError for its own."""


class ConvergenceError(RuntimeError):
    """A self-consistent field did not converge, became non-finite, or is ill-conditioned."""


class DtypeOnIpuError(TypeError):
    """The program computes in a dtype that an IPU does not have, or can only store."""


class Float64OnIpuError(DtypeOnIpuError):
    """The program computes in float64, which an IPU does not have."""


class BFloat16OnIpuError(DtypeOnIpuError):
    """The program computes in bfloat16, which an IPU does not have."""


class TileMemoryError(MemoryError):
    """The program needs more memory on a tile than there is."""


class UntrustedCache(PermissionError):
    """The folder for compiled programs belongs to others, or others may write to it."""


class MissingPackage(ImportError):
    """An optional package is not installed; the message says how to install it."""


MISTAKES = (
    UsageError,
    WrongOption,
    ConvergenceError,
    TileMemoryError,
    UntrustedCache,
    MissingPackage,
)
"""What a command prints as one sentence; all else is a bug and keeps its traceback."""
