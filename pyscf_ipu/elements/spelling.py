"""One spelling of a name of which case, hyphens, underscores and blanks do not count."""

_LEFT_OUT = str.maketrans("", "", "-_ ")


def plain_name(name: str) -> str:
    """The spelling, in small letters: of basis sets, as PySCF reads them, and of datasets."""
    return name.lower().translate(_LEFT_OUT)
