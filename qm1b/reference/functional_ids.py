"""Whether PySCF's functional is the dataset's: a comparison of libxc ids."""

import math
import re

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.xc.dispersion.correction import check_installed
from qm1b.errors import UserError


def check_functional(xc: str, definition: str) -> None:
    """Check that PySCF's functional consists of the libxc ids in a manifest.

    Args:
        xc: name of the functional.
        definition: the manifest's, as `pyscf_ipu.xc.Functional.definition`.

    Raises:
        UserError: the name is unknown, or has another meaning here than in the dataset.
        MissingPackage: the package of a dispersion correction is not installed.
    """
    from pyscf.dft import libxc

    from pyscf_ipu.xc.registry import (
        DISPERSION_MARK,
        functional,  # imports JAX
    )

    definition, _, stated_dispersion = definition.partition(DISPERSION_MARK)
    stated = whole, parts, exchange = _parse(definition)
    try:
        known = functional(xc)
        check_installed(known.dispersion)
    except UsageError as error:
        raise UserError(f"the dataset's functional is not known here: {error}") from None
    ours_alone, _, dispersion = known.definition.partition(DISPERSION_MARK)
    if stated_dispersion != dispersion:
        raise UserError(
            f'the dispersion of functional {xc} is "{dispersion or "none"}" here, in the dataset '
            f'"{stated_dispersion or "none"}"; verify it with the version that made it'
        )
    _, terms = libxc.parse_xc(known.pyscf_name)
    ours = {int(number): float(weight) for number, weight in terms}
    means = {whole: 1.0} if whole in ours else parts
    here = known.kind == "hf" or stated == _parse(ours_alone)
    if whole not in ours and known.kind != "hf":
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
