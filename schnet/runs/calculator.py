"""A trained network as a calculator of ASE, for any of ASE's optimisers and dynamics.

Energies are smooth as long as no atom has more than `neighbours` others within the cutoff.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.errors import UserError
from schnet.network.forces import predict_with_forces
from schnet.network.pack import Pack, PackShape, fill
from schnet.network.predictor import Predictor
from schnet.runs.run_folder import RunFolder
from schnet.samples.samples import Sample, Samples
from schnet.samples.targets import UNITS

try:
    from ase.calculators.calculator import Calculator, all_changes
except ImportError as error:
    raise MissingPackage(
        f"schnet.runs.calculator needs ASE, which is not installed: run {how_to_install('ase')}"
    ) from error


class SchNetCalculator(Calculator):
    """Energies (eV) and forces (eV/Angstrom) of a run that was trained on energies, or better on
    both (`--target forces+energy`).

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
        predictor.check_forces()
        self.predictor = predictor

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = tuple(all_changes),
    ) -> None:
        """Compute what ASE's `Calculator.calculate` asks for.

        Raises:
            UserError: atoms of which the training rows say nothing, or periodic ones.
        """
        super().calculate(atoms, list(properties), list(system_changes))
        assert self.atoms is not None
        if np.any(self.atoms.pbc):
            raise UserError("the atoms are periodic: only molecules are predicted")
        positions = np.asarray(self.atoms.positions / BOHR_TO_ANGSTROM, np.float32)
        numbers = np.asarray(self.atoms.numbers, np.uint8)
        samples = Samples.of([Sample(numbers, positions, float("nan"), smiles="", key="the atoms")])
        references = self.predictor.references
        baseline = float(references.baseline(samples)[0])
        outputs = predict_with_forces(self.predictor.model, self._pack(samples))
        value = baseline + references.scale * float(outputs.energies[0])
        self.results["energy"] = value * HARTREE_TO_EV
        forces = references.forces(np.asarray(outputs.forces)[: len(numbers)])
        self.results["forces"] = forces * UNITS["force"]["ev_angstrom"]

    def _pack(self, samples: Samples) -> Pack:
        # Slots for all possible pairs: atoms move without a new compilation.
        n = len(samples.numbers)
        shape = PackShape(n, 1, max(1, n * (n - 1) // 2))
        pack = fill(shape, self.predictor.graphs, samples, chosen=[0], targets=np.zeros(1))
        return jax.device_put(pack)  # jnp.asarray compiles a program for every shape
