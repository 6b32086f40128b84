"""Symmetric matrices in float32 for eigensolvers."""

import numpy as np

EPS = float(np.finfo(np.float32).eps)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def symmetric(n, scale=1.0, seed=0):
    a = scale * normal(n, n, seed=seed)
    return (a + a.T).astype(np.float32)


def with_spectrum(values):
    q = np.linalg.qr(normal(len(values), len(values)))[0]
    a = (q * values) @ q.T
    return ((a + a.T) / 2).astype(np.float32)
