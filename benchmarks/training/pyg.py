"""SchNet of PyTorch-Geometric, trained and used as its examples do: the peer of ours.

The only module that needs torch.  Same molecules, sizes, loss, update rule and learning rate as
ours; its own batches, data loader, layers and derivatives.  Its radius graph needs a compiled
extension, so edges come from a dense comparison of atoms within the batch, which its time contains.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch_geometric.data import Data  # pyright: ignore[reportMissingImports]
from torch_geometric.loader import DataLoader  # pyright: ignore[reportMissingImports]
from torch_geometric.nn import SchNet  # pyright: ignore[reportMissingImports]

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from schnet.network.config import ModelConfig, Optimizer
from schnet.samples.samples import Samples


def edges_within(cutoff: float):
    """All pairs of atoms of one molecule closer than the cutoff, in Angstrom."""

    def graph(positions, batch):
        same = batch[:, None] == batch[None, :]
        same.fill_diagonal_(False)
        i, j = same.nonzero(as_tuple=True)
        distance = (positions[i] - positions[j]).norm(dim=-1)
        near = distance < cutoff
        return torch.stack([j[near], i[near]]), distance[near]

    return graph


def network(config: ModelConfig, seed: int = 0) -> SchNet:
    """Theirs, of the size of ours."""
    sizes = config.width, config.filters, config.interactions, config.gaussians
    return _schnet(sizes, config.cutoff_bohr * BOHR_TO_ANGSTROM, config.readout, seed)


def _schnet(sizes: tuple[int, int, int, int], cutoff: float, readout: str, seed: int) -> SchNet:
    torch.manual_seed(seed)
    names = ("hidden_channels", "num_filters", "num_interactions", "num_gaussians")
    return SchNet(
        **dict(zip(names, sizes, strict=True)),
        cutoff=cutoff,
        interaction_graph=edges_within(cutoff),
        readout="mean" if readout == "mean" else "add",
        dipole=readout == "dipole",
    )


def graphs(samples: Samples, residuals: np.ndarray, scale: float = 1.0) -> list[Data]:
    """Molecules as it takes them: Angstrom, and the same numbers to learn; forces, if there are
    any, in units of `scale` per Bohr."""
    return [
        Data(
            z=torch.tensor(row.numbers.astype(np.int64)),
            pos=torch.tensor(row.positions_bohr * np.float32(BOHR_TO_ANGSTROM)),
            y=torch.tensor([value], dtype=torch.float32),
            **({} if row.forces is None else {"forces": torch.tensor(row.forces / scale)}),
        )
        for row, value in zip(samples, residuals.tolist(), strict=True)
    ]


def epochs(
    model: SchNet, data: list[Data], config: Optimizer, n: int, batch: int, seed: int
) -> Iterator[tuple[float, SchNet]]:
    """Train; after each epoch its seconds and the averaged weights' network."""
    torch.manual_seed(seed)
    groups = [
        {
            "params": [p for p in model.parameters() if (p.ndim > 1) == is_matrix],
            "weight_decay": config.weight_decay * is_matrix,
        }
        for is_matrix in (True, False)
    ]
    rule = torch.optim.AdamW(groups, lr=config.learning_rate)
    loader = DataLoader(data, batch_size=batch, shuffle=True)
    total = n * len(loader)
    warmup = round(config.warmup_fraction * total)

    def rate(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        part = (step - warmup) / max(1, total - warmup)
        falling = (1 + math.cos(math.pi * part)) / 2
        return config.final_fraction + (1 - config.final_fraction) * falling

    schedule = torch.optim.lr_scheduler.LambdaLR(rule, rate)
    mean = torch.optim.swa_utils.AveragedModel(
        model, avg_fn=lambda m, x, k: (d := min(config.ema, (1 + k) / (10 + k))) * m + (1 - d) * x
    )
    for _ in range(n):
        begun = time.perf_counter()
        model.train()
        for one in loader:
            rule.zero_grad()
            loss_of(model, one, config.forces_weight).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            rule.step()
            schedule.step()
            mean.update_parameters(model)
        yield time.perf_counter() - begun, mean.module


def loss_of(model: SchNet, one: Data, weight: float):
    """The loss of a batch, as ours: a molecule's components of forces share its weight."""
    if "forces" not in one:
        return (model(one.z, one.pos, one.batch)[:, 0] - one.y).abs().mean()
    energies, forces = with_forces(model, one, training=True)
    sizes = torch.bincount(one.batch)[one.batch]
    of_forces = ((forces - one.forces).abs().mean(1) / sizes).sum() / one.num_graphs
    return ((energies - one.y).abs().mean() + weight * of_forces) / (1.0 + weight)


def with_forces(model: SchNet, one: Data, training: bool):
    """Energies of a batch, and forces per Bohr by its derivative."""
    positions = one.pos.requires_grad_(True)
    energies = model(one.z, positions, one.batch)[:, 0]
    (slope,) = torch.autograd.grad(energies.sum(), positions, create_graph=training)
    return energies, -slope * BOHR_TO_ANGSTROM


def predict_forces(model: SchNet, data: list[Data], batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Energies and forces of all molecules."""
    model.eval()
    found = [with_forces(model, one, training=False) for one in DataLoader(data, batch_size=batch)]
    energies, forces = (torch.cat(parts).detach().numpy() for parts in zip(*found, strict=True))
    return energies, forces


def predict(model: SchNet, data: list[Data], batch: int) -> np.ndarray:
    """What it gives for all molecules."""
    model.eval()
    with torch.no_grad():
        loader = DataLoader(data, batch_size=batch)
        return np.concatenate([model(o.z, o.pos, o.batch)[:, 0].numpy() for o in loader])


def write_fixture(path: Path, samples: Samples) -> None:
    """Weights of a small network and what it gives for some molecules, for the tests."""
    found: dict[str, np.ndarray] = {}
    for readout in ("add", "mean", "dipole"):
        model = _schnet((32, 24, 2, 16), cutoff=6.0, readout=readout, seed=1)
        with torch.no_grad():  # away from zero, where a relative error means nothing
            model.lin2.bias.fill_(0.5)
        found[f"output_{readout}"] = predict(model, graphs(samples, samples.targets), 16)
        for name, value in model.state_dict().items():
            if name != "atomic_mass":
                found[f"weights/{name}"] = value.numpy()
    np.savez_compressed(path, **found)  # type: ignore[arg-type]
