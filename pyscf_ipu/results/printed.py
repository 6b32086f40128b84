"""A result as a short table: what `repr` gives, at a prompt and in a notebook."""

import numpy as np

from pyscf_ipu.base.terminal import counted, text_table
from pyscf_ipu.base.units import E_BOHR_TO_DEBYE, HARTREE_TO_EV
from pyscf_ipu.results.entries import UNITS, Values, entries, is_list
from pyscf_ipu.settings import Settings

MAX_ROWS = 20
"""Molecules of a list that are shown."""

ARRAYS = (
    *("mo_energy", "mulliken_charges", "spin_populations"),
    *("mo_coeff", "density_matrix", "forces"),
)
"""Fields whose numbers the table leaves out; it says their shapes."""


def table(values: Values) -> str:
    """The fields of a result as lines of text."""
    return _many(values) if is_list(values) else _one(values)


def level(settings: Settings | None) -> str:
    """A level of theory in a few words; "" without one."""
    return settings.in_words if settings is not None else ""


def _one(values: Values) -> str:
    digits = _digits(values["settings"])
    rows = [
        (name, f"{values[name]:.{digits}f}", UNITS[name], "")
        for name in ("energy", "dispersion")
        if values[name] is not None
    ]
    for name in ("homo", "lumo", "gap"):
        number = values[name]
        if np.isfinite(number):
            in_ev = f"{number * HARTREE_TO_EV:.3f} eV"
            rows.append((name, f"{number:.5f}", UNITS[name], in_ev))
    dipole = values["dipole"]
    debye = f"{np.linalg.norm(dipole) * E_BOHR_TO_DEBYE:.3f} Debye"
    rows.append(("dipole", " ".join(f"{x:z.4f}" for x in dipole), UNITS["dipole"], debye))
    if values["s_squared"] is not None:
        half = values["molecule"].unpaired / 2 if values["molecule"] else 0.0
        pure = f"{half * (half + 1):.4g} without other spins"
        rows.append(("s_squared", f"{values['s_squared']:.4f}", "", pure))
    if values["forces"] is not None:
        largest = np.linalg.norm(values["forces"], axis=1).max()
        rows.append(("largest force", f"{largest:.2e}", UNITS["forces"], ""))
    lines = [_title(values), *text_table(rows, "<0 >0 <0 >0", gap="  ")]
    if values["stable"] is not None:
        lines.append(f"stable: {bool(values['stable'])}, lower states found: {values['followed']}")
    if values["stable_unrestricted"] is not None:
        lines.append(f"stable with unequal spins: {bool(values['stable_unrestricted'])}")
    if values["ipu_cycles_low"] is not None:
        low, high = (values[f"ipu_cycles_{end}"] / 1e6 for end in ("low", "high"))
        fullest = values["ipu_fullest_tile_bytes"] / 1024
        lines.append(
            f"on the simulated IPU: {low:.2f} to {high:.2f} million cycles, fullest tile "
            f"{fullest:.0f} KiB"
        )
    shapes = [f"{n} {list(values[n].shape)}" for n in ARRAYS if values[n] is not None]
    return "\n".join([*lines, f"arrays: {', '.join(shapes)}"])


def _many(values: Values) -> str:
    every = entries(values)
    digits = _digits(values["settings"])
    rows: list[tuple[object, ...]] = [
        ("", "molecule", "energy/Hartree", "gap/eV", "dipole/Debye", "cycles", "status")
    ]
    for i, one in enumerate(every[:MAX_ROWS]):
        rows.append(
            (
                i,
                one["molecule"] or "",
                f"{one['energy']:.{digits}f}",
                f"{one['gap'] * HARTREE_TO_EV:.3f}",
                f"{np.linalg.norm(one['dipole']) * E_BOHR_TO_DEBYE:.3f}",
                one["cycles"],
                one["status"],
            )
        )
    theory = level(values["settings"])
    title = counted(len(every), "molecule") + (f", {theory}" if theory else "")
    lines = [title, *text_table(rows, ">0 <0 >0 >0 >0 >0 <0", gap="  ")]
    if len(every) > MAX_ROWS:
        lines.append(f"... and {len(every) - MAX_ROWS} more; to_pandas() has all")
    return "\n".join(lines)


def _title(values: Values) -> str:
    what = [str(values["molecule"] or "one molecule"), level(values["settings"])]
    return f"{', '.join(filter(None, what))}: {values['status']}, {values['cycles']} cycles"


def _digits(settings: Settings | None) -> int:
    """Decimals of an energy in Hartree that mean something."""
    return 6 if settings is None or settings.precision == "float32" else 8
