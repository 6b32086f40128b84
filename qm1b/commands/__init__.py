"""The subcommands of `qm1b`: frozen dataclasses whose fields are the flags; calling one runs it."""
