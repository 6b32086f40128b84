"""Inputs and answers of QCSchema in any of its forms: a dict or a model, of version 1 or 2.

D. G. A. Smith et al., J. Chem. Phys. 155, 204801 (2021), doi:10.1063/5.0059356.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pyscf_ipu.base.errors import MissingPackage, UsageError
from pyscf_ipu.base.extras import how_to_install

try:
    from qcelemental.models import v2
except ImportError as error:
    raise MissingPackage(
        f"QCSchema's models come from QCElemental: run {how_to_install('qcschema')}"
    ) from error

Given: TypeAlias = object
"""An AtomicInput: a model of QCElemental of version 1 or 2, or a dict with the fields of one."""
Answer: TypeAlias = Any
"""An AtomicResult or a FailedOperation, in the form of the input."""

_OF_SPECIFICATION = ("driver", "model", "keywords", "protocols", "extras")
_LABELS = ("schema_name", "schema_version")


def read(given: Given) -> v2.AtomicInput:
    """The input as a model of version 2.

    Raises:
        TypeError: this is neither a dict nor a model.
        UsageError: QCElemental refuses it.
    """
    if not isinstance(given, Mapping):
        convert = getattr(given, "convert_v", None)
        if convert is None:
            raise TypeError(
                f"an AtomicInput of QCElemental or a dict is needed, not a {type(given).__name__}"
            )
        return convert(2)
    fields = {key: value for key, value in given.items() if key not in _LABELS}
    if "specification" not in fields:
        fields["specification"] = {k: fields.pop(k) for k in _OF_SPECIFICATION if k in fields}
    if isinstance(molecule := fields.get("molecule"), Mapping):
        fields["molecule"] = {k: v for k, v in molecule.items() if k not in _LABELS}
    try:
        return v2.AtomicInput.model_validate(fields)
    except Exception as error:  # of QCElemental, which has one for each kind of mistake
        raise UsageError(f"not an AtomicInput: {error}") from error


def in_form_of(answer: v2.AtomicResult | v2.FailedOperation, given: Given) -> Answer:
    """The answer, a model of version 2, in the form of the input."""
    is_dict = isinstance(given, Mapping)
    version = 2 if is_dict and "specification" in given else 1
    if not is_dict:
        version = int(getattr(given, "schema_version", 2))
    converted = answer if version == 2 else answer.convert_v(1)
    if not is_dict:
        return converted
    return converted.model_dump() if version == 2 else converted.dict()


def failed(given: Given, kind: str, message: str) -> v2.FailedOperation:
    """A FailedOperation.

    Args:
        given: the input.
        kind: "input_error" or "convergence_error".
        message: what was wrong, what is allowed, what to do.
    """
    asked = dict(given) if isinstance(given, Mapping) else given
    name = given.get("id") if isinstance(given, Mapping) else getattr(given, "id", None)
    error = {"error_type": kind, "error_message": message}
    return v2.FailedOperation.model_validate({"id": name, "input_data": asked, "error": error})
