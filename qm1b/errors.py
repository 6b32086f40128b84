"""Errors that the command prints as one sentence instead of a traceback."""

from pyscf_ipu.errors import UsageError


class UserError(UsageError):
    """Something the user can fix; the message says what was wrong, what is allowed, what to do."""
