"""Errors that the command prints as one sentence instead of a traceback.

They are qm1b's, whose readers this package uses, so that there is one kind to catch.
"""

from qm1b.errors import UserError

__all__ = ["UserError"]
