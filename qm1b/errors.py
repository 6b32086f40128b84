"""What the command prints as one sentence instead of a traceback, and what may befall one row."""

from numpy.linalg import LinAlgError

from pyscf_ipu.base.errors import InvalidMolecule, UntrustedCache, UsageError

UserError = UsageError
"""The engine's mistakes of users are this package's, too, so that there is one kind to catch."""

OF_CALCULATION = (ArithmeticError, LinAlgError, MemoryError, RuntimeError, InvalidMolecule)
"""What a calculation raises because of its molecule; XLA's errors are RuntimeErrors.  Any other
error is of the program, the settings or the machine, and ends the run."""


def is_of_no_molecule(error: Exception) -> bool:
    """Whether an error is of the settings or the machine, so that every row would meet the same."""
    of_all = isinstance(error, UsageError | UntrustedCache | ImportError | ConnectionError)
    return of_all and not isinstance(error, InvalidMolecule)
