"""Energy and error of each SCF cycle: precisions, and ways to make the next Fock matrix."""

from dataclasses import replace

import jax
import numpy as np

from benchmarks.paper.drawing import COLOURS, Job, canvas, keep, legend, plain
from pyscf_ipu import Molecule, Settings, Solver, rks, rks_core
from pyscf_ipu.convergence import PLAIN, Convergence
from pyscf_ipu.ipu import BOW, machine_of
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.units import HARTREE_TO_EV

SMILES = {True: "CO", False: "C=CC=O"}
CYCLES = 20
NEVER = 10_000
WAYS = {
    "DIIS": PLAIN,
    "no DIIS": Convergence(diis_start=NEVER),
    "damped by half": Convergence(damping=0.5, diis_start=NEVER),
}
LEAST_MEV = 1e-5


def each_cycle(job: Job) -> None:
    """The SCF of one molecule with 20 cycles, as PySCF-IPU does them."""
    mol = Molecule.from_smiles(SMILES[job.quick], seed=0)
    level = Settings(xc="b3lyp5", grid_level=0, fixed_cycles=CYCLES, history=True)
    exact = replace(level, precision="float64")
    reference = float(rks(mol, solver=Solver(replace(exact, fixed_cycles=40))).energy)
    curves: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for precision in ("float32", "mixed", "float64"):
        solver = Solver(replace(level, precision=precision))
        for way, aids in WAYS.items():
            if way == "DIIS" or precision != "mixed":
                found = solver.run(solver.shape(mol), [mol], convergence=aids)[0]
                curves[precision, way] = _with_final(precision, found)
    curves["simulated IPU", "DIIS"] = simulated(mol, level)
    figure = canvas(3, 1, width=4.0)
    panels = figure.subplots(1, 3)
    for i, ((precision, way), curve) in enumerate(curves.items()):
        at = np.arange(1, len(curve["energy"]) + 1)
        error = 1e3 * HARTREE_TO_EV * np.abs(curve["energy"] - reference)
        wide = 2.5 if precision == "float64" else 1.2
        style = {"color": COLOURS[i], "lw": wide, "label": f"{precision}, {way}"}
        style["zorder"] = 1 if precision == "float64" else 2
        kind = "-" if precision == "float64" else "--" if precision == "float32" else "-."
        panels[0].plot(at, HARTREE_TO_EV * (curve["energy"] - reference), kind, **style)
        panels[1].semilogy(at, np.maximum(error, LEAST_MEV), kind, **style)
        panels[2].semilogy(at, curve["commutator_norm"], kind, **style)
    plain(panels[0], "SCF cycle", "energy above the minimum (eV)").set_yscale("symlog", linthresh=1)
    plain(panels[1], "SCF cycle", "|error of the energy| (meV)", mol.smiles or "")
    plain(panels[2], "SCF cycle", "largest element of [F, D] (Hartree)")
    legend(panels[0], fontsize=6)
    rows = [
        (precision, way, i + 1, *(curve[name][i] for name in ("energy", "commutator_norm", "gap")))
        for (precision, way), curve in curves.items()
        for i in range(len(curve["energy"]))
    ]
    header = ("precision", "way", "cycle", "energy_hartree", "commutator_hartree", "gap_hartree")
    keep(job, "scf_cycles", figure, header, rows)


def _with_final(precision: str, found: object) -> dict[str, np.ndarray]:
    """The cycles; mixed has one more energy, that of the final evaluation in float64."""
    history = dict(found.history)  # type: ignore[attr-defined]
    if precision == "mixed":
        last = {"energy": found.energy, "commutator_norm": found.commutator_norm}  # type: ignore[attr-defined]
        last["gap"] = found.gap  # type: ignore[attr-defined]
        return {name: np.append(values, last[name]) for name, values in history.items()}
    return history


def simulated(mol: Molecule, level: Settings) -> dict[str, np.ndarray]:
    """The same with the algorithms that the simulated IPU prices, in float32."""
    core, arguments = rks_core(mol, level, lambda shape: machine_of(BOW, 1, shape))
    history = jax.device_get(jax.jit(core)(*arguments).history)
    assert history is not None
    return {
        "energy": np.asarray(to_float64(history.energy)),
        "commutator_norm": np.asarray(history.commutator, np.float64),
        "gap": np.asarray(history.gap, np.float64),
    }
