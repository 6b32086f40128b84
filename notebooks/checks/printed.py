"""Compare what a page or a notebook shows with what its code prints now.

Words must be the same, and white space does not count.  Numbers are compared by their kind:

* a whole number exactly, or to 2 % if it has commas (cycles of a simulated IPU);
* a decimal number to two units in the last digit that is shown;
* a number with a negative exponent, which is a rounding error or a residual, may be smaller, and
  up to thirty times larger;
* times, rates and amounts of memory (numbers before s, ms, /s, GiB and the like), versions and the
  hash of the code that computed rows not at all.

`…` stands for what depends on the machine: alone in a line for any lines, else for any characters
without white space, such as further digits.

In lines of errors (meV and the like) the first decimal number may differ by a factor of three, and
the others may be three times the largest.

Lines that a command prints once a minute, so only on a slow machine, are left out.
Notebooks show all that is printed, so a loose comparison is for them.  It leaves out lines of
progress, and takes numbers that differ by 5 %, whole numbers also by one.
"""

import re

ELLIPSIS = "…"
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?(?![\w.]*\d)(?!\w)")
SOURCES = re.compile(r"(?<=\(sources\): )[0-9a-f]{16}\b")
VERSION = re.compile(r"\d+(?:\\\.\d+){2,}")
MEASURED = re.compile(
    r"\s*(?:CPU )?(?:s|ms|min|h|seconds?|minutes?|[kMG]i?B|molecules a second|(?:\w+ ?)?/s)(?![\w²])"
)
ERRORS = re.compile(r"(?:m|µ|u|n)(?:eV|Ha)\b|^\w+_(?:mev|e|e_bohr)\s")
EVERY_MINUTE = re.compile(r"PySCF \d+/\d+")
PROGRESS = re.compile(r"worker \d|programs: \d|.*conformers/s, ETA")


def difference(shown: str, printed: str, loose: bool = False) -> str:
    """Say where the printed text leaves the shown one; empty if it does not."""
    wanted, lines = _lines(shown, loose), _lines(printed, loose)
    skipping = False
    for line in wanted:
        if line == ELLIPSIS:
            skipping = True
            continue
        while skipping and lines and not same_line(line, lines[0], loose):
            lines.pop(0)
        skipping = False
        if not lines or not same_line(line, lines[0], loose):
            return f"shown:   {line}\nprinted: {lines[0] if lines else 'nothing more'}"
        lines.pop(0)
    return f"shown:   nothing more\nprinted: {lines[0]}" if lines and not skipping else ""


def same_line(shown: str, printed: str, loose: bool = False) -> bool:
    """Return whether a printed line agrees with the one shown."""
    pattern, numbers, end = "", [], 0
    for match in NUMBER.finditer(shown):
        pattern += f"{_words(shown[end : match.start()])}\\s*({NUMBER.pattern})"
        numbers.append((match[0], shown[match.end() :]))
        end = match.end()
    matched = re.fullmatch(pattern + _words(shown[end:]), printed)
    if not matched:
        return False
    errors = [_value(number) for number, _ in numbers if "." in number]
    largest = max(map(abs, errors)) if errors and ERRORS.search(shown) else None
    for (number, behind), other in zip(numbers, matched.groups(), strict=True):
        if MEASURED.match(behind):
            continue
        if largest is not None and "." in number:
            if not _same_error(_value(number), _value(other), largest, number == numbers[0][0]):
                return False
        elif not _same_number(number, other, loose):
            return False
    return True


def _lines(text: str, loose: bool) -> list[str]:
    if loose:
        text = re.sub(r"\[[^]\n]*\.{3}", f"[{ELLIPSIS}", text)  # pandas cuts long lists
    text = SOURCES.sub(ELLIPSIS, text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not EVERY_MINUTE.fullmatch(line)]
    return [line for line in lines if not (loose and PROGRESS.match(line))]


def _words(text: str) -> str:
    """A pattern for what stands between numbers."""
    words = re.escape(re.sub(r"\s+", " ", text))
    return VERSION.sub(r"[\\d.]+", words).replace(r"\ ", r"\s*").replace(ELLIPSIS, r"\S*")


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _same_error(shown: float, printed: float, largest: float, leads: bool) -> bool:
    return abs(printed) <= 3 * largest and (not leads or abs(printed) >= abs(shown) / 3)


def _same_number(shown: str, printed: str, loose: bool) -> bool:
    a, b = _value(shown), _value(printed)
    mantissa, _, exponent = shown.lower().partition("e")
    if exponent.startswith("-"):
        return abs(b) <= 30 * abs(a)
    if "." not in mantissa and not exponent:
        share = 0.05 if loose else 0.02 if "," in shown else 0.0
        return abs(a - b) <= max(share * abs(a), float(loose))
    digits = len(mantissa.partition(".")[2])
    tolerance = 2.001 * 10.0 ** (int(exponent or 0) - digits)
    return abs(a - b) <= max(tolerance, 0.05 * abs(a) if loose else 0.0)
