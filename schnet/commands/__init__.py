"""Subcommands of `schnet`, one module each, and what they do (`jobs`)."""
