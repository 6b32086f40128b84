"""The level of theory by keywords, for functions that take it as `**level: Unpack[LevelKeywords]`.

`help` and editors list the keywords as if each function had them in its signature.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict

from pyscf_ipu.elements.cartesian import Cart


class LevelKeywords(TypedDict, total=False):
    """Fields of `Settings`; None stands for the given solver's value, or the default."""

    basis: str | None
    xc: str | None
    grid_level: int | Sequence[int] | None
    precision: str | None
    cart: Cart | None
    max_cycles: int | None
    prune: bool | None
    grid_kind: Literal["pyscf", "gaussian"] | None
    jk: Literal["exact", "ri", "auto"] | None
    fixed_cycles: int | None
    accuracy: Literal["energy", "orbitals", "properties"] | None
    first_cycles: Literal["coarse", "full"] | None
    nlc_grid: int | Sequence[int] | None


OPEN_SHELL = "pi.uks computes open shells: Molecule(..., multiplicity=2) and pi.uks(molecule)"
_GRID = "give grid_level=, 0 to 9"
_CYCLES = "give max_cycles="
_THRESHOLD = "the thresholds belong to the precision: precision='float64' has the tightest"
_FITTED = "give jk='ri'; the auxiliary basis is PySCF's default"
_FUNCTIONAL = "give the functional as xc="

MISTAKES = {
    "charge": "the charge belongs to the molecule: Molecule(..., charge=1)",
    **dict.fromkeys(("spin", "multiplicity", "nelectron", "unrestricted"), OPEN_SHELL),
    **dict.fromkeys(
        ("solvent", "eps", "pcm"),
        "there is no solvent model; pyscf.dft.RKS(mole).PCM() computes one",
    ),
    **dict.fromkeys(
        ("disp", "dispersion", "d3", "d4"),
        "the dispersion correction belongs to the functional's name: xc='b3lyp-d3bj'",
    ),
    **dict.fromkeys(("functional", "method", "dft"), _FUNCTIONAL),
    **dict.fromkeys(("grid", "grids", "level"), _GRID),
    **dict.fromkeys(("nlcgrids", "nlc_level"), "give nlc_grid=, 0 to 9"),
    **dict.fromkeys(("nlc", "vv10"), "VV10 belongs to the functional's name: xc='wb97m-v'"),
    **dict.fromkeys(("max_cycle", "max_iter", "maxiter", "max_iterations"), _CYCLES),
    **dict.fromkeys(("conv_tol", "tol", "threshold", "conv_tol_grad"), _THRESHOLD),
    **dict.fromkeys(("auxbasis", "density_fit", "df", "ri"), _FITTED),
    **dict.fromkeys(("dtype", "double"), "give precision=: 'float32', 'mixed' or 'float64'"),
    "cartesian": "give cart=True",
    "preset": "give solver=pi.Solver(pi.Settings.preset('qm9'))",
    **dict.fromkeys(
        ("ecp", "dm0", "init_guess", "symmetry", "level_shift", "damp"),
        "not offered; see the arguments in the documentation, or use pyscf.dft.RKS",
    ),
}
"""Keywords that people give for a level of theory and that there are not; what to give."""
