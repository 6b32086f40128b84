"""Whether PySCF's functional is the dataset's: a comparison of libxc ids."""

import math
import re

from qm1b.errors import UserError


def check_functional(xc: str, definition: str) -> None:
    """Check that PySCF's functional consists of the libxc ids in a manifest.

    Args:
        xc: name of the functional.
        definition: the manifest's, as `pyscf_ipu.xc.Functional.definition`.

    Raises:
        UserError: the name is unknown, or has another meaning here than in the dataset.
    """
    from pyscf.dft import libxc

    from pyscf_ipu.xc import functional  # imports JAX

    stated = whole, parts, exchange = _parse(definition)
    try:
        known = functional(xc)
    except ValueError as error:
        raise UserError(f"the dataset's functional is not known here: {error}") from None
    _, terms = libxc.parse_xc(known.pyscf_name)
    ours = {int(number): float(weight) for number, weight in terms}
    means = {whole: 1.0} if whole in ours else parts
    here = xc == "hf" or stated == _parse(known.definition)
    if whole not in ours and xc != "hf":
        hybrid = libxc.hybrid_coeff(known.pyscf_name)  # that of the parts included
        here = here and math.isclose(float(hybrid), exchange, abs_tol=1e-12)
    if not here or ours != means:
        raise UserError(
            f"functional {xc} of this PySCF has the libxc ids {sorted(ours)}, but the dataset's is "
            f'"{definition}"; verify it with a release of PySCF that has the same ids'
        )


def _parse(text: str) -> tuple[int | None, dict[int, float], float]:
    """The libxc ids in a definition.

    Returns:
        The id of the whole functional, if there is one, the ids and weights of its parts, and the
        weight of exact exchange.
    """
    whole = re.search(r"libxc (\d+)", text)
    exchange = re.search(r"([\d.]+) HF\b", text)
    terms = re.findall(r"(?:([\d.]+) )?\w+\((\d+)\)", text)
    return (
        int(whole.group(1)) if whole else None,
        {int(number): float(weight or 1.0) for weight, number in terms},
        float(exchange.group(1)) if exchange else 0.0,
    )
