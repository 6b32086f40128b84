"""A trained network as a calculator of ASE, for any of ASE's optimisers and dynamics.

Energies are smooth as long as no atom has more than `neighbours` others within the cutoff.
"""

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

from pyscf_ipu.advice.extras import how_to_install
from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.errors import UserError
from schnet.network.model import SchNet
from schnet.network.pack import Pack, PackShape, fill
from schnet.network.predictor import Predictor
from schnet.runs.run_folder import RunFolder
from schnet.samples.samples import Sample, Samples

try:
    from ase.calculators.calculator import Calculator, all_changes
except ImportError as error:
    raise ImportError(
        f"schnet.calculator needs ASE, which is not installed: run {how_to_install('ase')}"
    ) from error


class SchNetCalculator(Calculator):
    """Energies (eV) and forces (eV/Angstrom) of a run that was trained on energies.

    atoms.calc = SchNetCalculator("runs/energy")
    """

    implemented_properties: ClassVar[list[str]] = ["energy", "forces"]  # type: ignore[misc]

    def __init__(self, run: str | Path | Predictor, **keywords: Any) -> None:
        """Open a run.

        Args:
            run: folder of a run, or a predictor.
            keywords: arguments of ASE's `Calculator`.

        Raises:
            UserError: there is no run, or it has another target.
        """
        super().__init__(**keywords)
        predictor = run if isinstance(run, Predictor) else RunFolder(Path(run)).predictor()
        if predictor.target.name != "energy":
            raise UserError(
                f"the run predicts {predictor.target.name}: forces need one of the energy "
                "(`schnet train --target energy`)"
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
            raise UserError("the atoms are periodic: only molecules are predicted")
        positions = np.asarray(self.atoms.positions / BOHR_TO_ANGSTROM, np.float32)
        numbers = np.asarray(self.atoms.numbers, np.uint8)
        samples = Samples.of([Sample(numbers, positions, float("nan"), "", "the atoms")])
        references = self.predictor.references
        baseline = float(references.baseline(samples)[0])
        value, gradient = energy_and_gradient(self.predictor.model, self._pack(samples))
        self.results["energy"] = (baseline + references.scale * float(value)) * HARTREE_TO_EV
        forces = -np.asarray(gradient, np.float64)[: len(numbers)]
        per_angstrom = HARTREE_TO_EV / BOHR_TO_ANGSTROM
        self.results["forces"] = references.scale * forces * per_angstrom

    def _pack(self, samples: Samples) -> Pack:
        # Slots for all possible pairs: atoms move without a new compilation.
        n = len(samples.numbers)
        shape = PackShape(n, 1, max(1, n * (n - 1) // 2))
        pack = fill(shape, self.predictor.graphs, samples, [0], np.zeros(1))
        return jax.tree.map(jnp.asarray, pack)


@eqx.filter_jit
def energy_and_gradient(model: SchNet, pack: Pack) -> tuple[Float[Array, ""], Float[Array, "A 3"]]:
    """The sum of the network's outputs for a pack, and its gradient by the positions (Bohr)."""

    def total(positions: Float[Array, "A 3"]) -> Float[Array, ""]:
        moved = replace(pack, positions_bohr=positions)
        return jnp.sum(jnp.where(pack.there, model(moved), 0.0))

    return jax.value_and_grad(total)(pack.positions_bohr)
