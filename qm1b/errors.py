"""Errors that the command prints as one sentence instead of a traceback."""


class UserError(Exception):
    """Something the user can fix; the message says what was wrong, what is allowed, what to do."""
