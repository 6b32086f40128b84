"""Subcommands of `schnet`, one module each."""
