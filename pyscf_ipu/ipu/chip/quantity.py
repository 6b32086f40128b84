"""Numbers with a unit and a source."""

from dataclasses import dataclass

HOWS = ("measured", "vendor", "formula", "derived", "counted", "estimated", "unknown")
"""How a figure is known, from the firmest ground to none at all."""


class UnknownQuantityError(ValueError):
    """A figure was needed as a number, but it is not published."""


@dataclass(frozen=True)
class Quantity:
    """A figure of the hardware.

    Raises:
        ValueError: `how` is not one of HOWS, the source is missing, or `value` and `how` disagree
            on whether the figure is known.
    """

    value: int | float | None
    """The number in `unit`; None exactly if it is unknown."""
    unit: str
    how: str
    """One of HOWS: measured on hardware, stated by the vendor, taken from published code
    (formula), arithmetic on such figures (derived), counted from a program, estimated for the
    reason that `source` gives, or unknown."""
    source: str
    """Paper, document, repository and symbol; for an unknown figure, which one it is."""

    def __post_init__(self) -> None:
        _check_how(self.how)
        if not self.source:
            raise ValueError("a quantity needs a source: name the document that it was read in")
        if (self.value is None) != (self.how == "unknown"):
            raise ValueError(
                f'a value of {self.value} cannot be "{self.how}" ({self.source}): '
                'None goes with "unknown", and a number with anything else'
            )

    @property
    def known(self) -> bool:
        return self.value is not None

    def __float__(self) -> float:
        """The value in `unit`; raises UnknownQuantityError, naming the figure, if it is unknown."""
        if self.value is None:
            raise UnknownQuantityError(
                f"this figure is not known: {self.source}. Choose a target that has it, or put "
                "your own in with dataclasses.replace(target, ...)"
            )
        return float(self.value)

    def __int__(self) -> int:
        """The value, if it is a whole number; raises ValueError if it is not."""
        value = float(self)
        if not value.is_integer():
            raise ValueError(
                f"{value} {self.unit} is not a whole number: use float() ({self.source})"
            )
        return int(value)


def unknown(what: str, unit: str) -> Quantity:
    """A figure that no public source gives; its use raises an error that names it by `what`."""
    return Quantity(None, unit, "unknown", source=f"{what}: no public figure found")


def weakest(*hows: str) -> str:
    """Provenance of a result: that of its weakest input.

    Raises:
        ValueError: There is no input, or one that is not of HOWS.
    """
    if not hows:
        raise ValueError("weakest() needs the provenance of at least one input")
    for how in hows:
        _check_how(how)
    return max(hows, key=HOWS.index)


def _check_how(how: str) -> None:
    if how not in HOWS:
        raise ValueError(f"unknown provenance {how!r}: choose one of {', '.join(HOWS)}")
