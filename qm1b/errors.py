"""What the command prints as one sentence instead of a traceback."""

from pyscf_ipu.errors import UsageError

UserError = UsageError
"""The engine's mistakes of users are this package's, too, so that there is one kind to catch."""
