"""A trained network as a calculator of ASE: any optimiser or dynamics of ASE runs on it.

Smooth as long as no atom has more than `neighbours` others within the cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

from .errors import UserError
from .folder import RunFolder
from .model import SchNet
from .pack import Pack, PackShape, fill
from .predictor import Predictor
from .samples import Sample, Samples

try:
    from ase.calculators.calculator import Calculator, all_changes
except ImportError as error:
    raise ImportError(
        "schnet.calculator needs ASE, which is not installed: pip install 'pyscf-ipu[ase]'."
    ) from error


class SchNetCalculator(Calculator):
    """Energies (eV) and forces (eV/Angstrom) of a run that was trained on energies.

        atoms.calc = SchNetCalculator("runs/energy")

    Any optimiser or dynamics of ASE runs on it.
    """

    implemented_properties: ClassVar[list[str]] = ["energy", "forces"]  # type: ignore[misc]

    def __init__(self, run: str | Path | Predictor, **keywords: Any) -> None:
        """Open a run.

        Args:
            run: folder of a run, or a predictor.
            keywords: those of ASE's `Calculator`.

        Raises:
            UserError: no run, or one of another target.
        """
        super().__init__(**keywords)
        predictor = run if isinstance(run, Predictor) else RunFolder(Path(run)).predictor()
        if predictor.target.name != "energy":
            raise UserError(
                f"the run predicts {predictor.target.name}: forces need one of the energy "
                "(`schnet train --target energy`)."
            )
        self.predictor = predictor

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = tuple(all_changes),
    ) -> None:
        """See ASE's `Calculator.calculate`.

        Raises:
            UserError: an element that no training row had, or periodic atoms.
        """
        super().calculate(atoms, list(properties), list(system_changes))
        assert self.atoms is not None
        if np.any(self.atoms.pbc):
            raise UserError("the atoms are periodic: only molecules are predicted.")
        samples = _samples(self.atoms)
        scale = self.predictor.references.scale
        baseline = float(self.predictor.references.baseline(samples)[0])
        value, gradient = energy_and_gradient(self.predictor.model, self._pack(samples))
        self.results["energy"] = (baseline + scale * float(value)) * HARTREE_TO_EV
        per_angstrom = HARTREE_TO_EV / BOHR_TO_ANGSTROM
        forces = -np.asarray(gradient, np.float64)[: len(samples.numbers)]
        self.results["forces"] = scale * forces * per_angstrom

    def _pack(self, samples: Samples) -> Pack:
        # Slots for all pairs that there may be: atoms move without a new compilation.
        n = len(samples.numbers)
        graphs = self.predictor.graphs
        shape = PackShape(n, 1, max(1, n * (n - 1) // 2))
        return jax.tree.map(jnp.asarray, fill(shape, graphs, samples, [0], np.zeros(1)))


@eqx.filter_jit
def energy_and_gradient(model: SchNet, pack: Pack) -> tuple[Float[Array, ""], Float[Array, "A 3"]]:
    """What the network gives for a pack, summed, and its derivative by positions in Bohr."""

    def total(positions: Float[Array, "A 3"]) -> Float[Array, ""]:
        moved = replace(pack, positions_bohr=positions)
        return jnp.sum(jnp.where(pack.there, model(moved), 0.0))

    return jax.value_and_grad(total)(pack.positions_bohr)


def _samples(atoms: Any) -> Samples:
    positions = np.asarray(atoms.positions / BOHR_TO_ANGSTROM, np.float32)
    numbers = np.asarray(atoms.numbers, np.uint8)
    return Samples.of([Sample(numbers, positions, float("nan"), "", "the atoms")])
