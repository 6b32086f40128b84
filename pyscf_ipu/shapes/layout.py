"""Where everything lies inside a shape: shells by kind, AOs, and shell pairs by class.

Computed once per shape, on the host, in NumPy.  A *pair class* collects all shell pairs whose
angular momenta agree; one vertex program serves a class, whatever the primitives are.

Every index array is int32, whatever JAX's x64 mode: indices of two widths must not meet in a trace.
"""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from pyscf_ipu.elements.basis import ShellKind
from pyscf_ipu.shapes.shape import Shape


@dataclass(frozen=True)
class ShellGroup:
    """All n shells of one kind."""

    kind: ShellKind
    source: tuple[tuple[int, int], ...]
    """(slot class, shell of the class) per run of shells."""
    atom: Int[np.ndarray, " n"]  # slot of each shell
    ao: Int[np.ndarray, " n"]  # its first AO

    @property
    def n_shells(self) -> int:
        return len(self.atom)


@dataclass(frozen=True)
class KindPair:
    """Shell pairs (first[i], second[i]) between two groups, as indices into the groups."""

    a: int
    b: int
    first: Int[np.ndarray, " pairs"]
    second: Int[np.ndarray, " pairs"]


@dataclass(frozen=True)
class PairClass:
    """Shell pairs of one angular type."""

    ls_a: tuple[int, ...]
    ls_b: tuple[int, ...]
    members: tuple[KindPair, ...]

    @property
    def order(self) -> int:
        """Highest Hermite order of a product."""
        return max(self.ls_a) + max(self.ls_b)


@dataclass(frozen=True)
class Layout:
    """Groups, classes and AO bookkeeping of a shape."""

    shape: Shape
    groups: tuple[ShellGroup, ...]
    classes: tuple[PairClass, ...]
    slots: tuple[Int[np.ndarray, " _"], ...]  # per slot class
    first_ao: Int[np.ndarray, " A"]  # of every slot
    ao_atom: Int[np.ndarray, " N"]  # slot of every AO
    atom_aos: Int[np.ndarray, "A most"]  # the AOs of every slot, filled up with N


@functools.lru_cache(maxsize=256)
def layout_of(shape: Shape) -> Layout:
    """Lay a shape out; cached."""
    owner = shape.slot_class()
    slots = tuple(np.flatnonzero(owner == c).astype(np.int32) for c in range(len(shape.classes)))
    sizes = np.array([shape.classes[c].n_ao for c in owner], np.int32)
    first_ao = (np.cumsum(sizes) - sizes).astype(np.int32)
    groups = _groups(shape, slots, first_ao)
    ao_atom = np.repeat(np.arange(shape.n_atoms, dtype=np.int32), sizes)
    place = np.arange(sizes.max(), dtype=np.int32)
    aos = np.where(place < sizes[:, None], first_ao[:, None] + place, np.int32(sizes.sum()))
    return Layout(
        shape,
        groups,
        _classes(groups),
        slots=slots,
        first_ao=first_ao,
        ao_atom=ao_atom,
        atom_aos=aos,
    )


def _groups(
    shape: Shape, slots: tuple[np.ndarray, ...], first_ao: np.ndarray
) -> tuple[ShellGroup, ...]:
    by_kind: dict[ShellKind, list] = {}
    for c, (slot, atoms) in enumerate(zip(shape.classes, slots, strict=True)):
        offset = 0
        for s, kind in enumerate(slot.kinds):
            by_kind.setdefault(kind, []).append(((c, s), atoms, first_ao[atoms] + offset))
            offset += kind.n_functions
    return tuple(
        ShellGroup(
            kind,
            tuple(source for source, _, _ in runs),
            np.concatenate([atoms for _, atoms, _ in runs]),
            ao=np.concatenate([ao for _, _, ao in runs]),
        )
        for kind, runs in sorted(by_kind.items(), key=lambda item: (item[0].ls, -item[0].n_prim))
    )


def _classes(groups: tuple[ShellGroup, ...]) -> tuple[PairClass, ...]:
    by_shells: dict[tuple, list[KindPair]] = {}
    for a, group_a in enumerate(groups):
        for b in range(a, len(groups)):
            first, second = np.meshgrid(
                np.arange(group_a.n_shells, dtype=np.int32),
                np.arange(groups[b].n_shells, dtype=np.int32),
                indexing="ij",
            )
            keep = first >= second if a == b else np.ones_like(first, bool)
            pair = KindPair(a, b, first[keep], second=second[keep])
            by_shells.setdefault((group_a.kind.ls, groups[b].kind.ls), []).append(pair)
    classes = [PairClass(la, lb, tuple(pairs)) for (la, lb), pairs in by_shells.items()]
    return tuple(sorted(classes, key=lambda c: (c.order, c.ls_a, c.ls_b)))
