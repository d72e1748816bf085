"""Quadrature over the defect rate of a die: the mixing distribution behind each yield model, scaled to mean 1.

Every yield model is E[exp(-x T)] for some spread T of the rate between dies: poisson T = 1, seeds and bose_einstein
exponential, negative_binomial gamma, rectangular uniform on (0, 2), murphy triangular on (0, 2), moore Levy (whose
mean is infinite).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError
from supply.manufacturing.yield_models import MODELS

__all__ = ["rate_nodes", "sample_rates"]

_NODES = 96
_LAGUERRE_UP_TO = 60.0


def rate_nodes(model: str, alpha: float = 3.0, layers: int = 1, nodes: int = _NODES) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights with sum(w exp(-x t)) equal to the model's yield at x expected faults.

    Raises:
        ManufacturingError: for an unknown model, or several layers of a model whose sum of rates has no closed mixture.

    >>> t, w = rate_nodes("negative_binomial", 3.0)
    >>> round(float((w * np.exp(-0.814 * t)).sum()), 3)
    0.487
    """
    if model not in MODELS:
        raise ManufacturingError(f"yield model {model!r} is not known; choose one of {', '.join(MODELS)}")
    if layers != 1 and model in ("murphy", "rectangular", "moore"):
        raise ManufacturingError(f"{layers} layers of {model} have no closed mixture: use negative_binomial")
    return _nodes(model, float(alpha), int(layers), nodes)


@lru_cache(maxsize=64)
def _nodes(model: str, alpha: float, layers: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    if model == "poisson" or (model == "negative_binomial" and np.isposinf(alpha)):
        return np.array([float(layers)]), np.array([1.0])
    if model in ("murphy", "rectangular"):
        points, weights = np.polynomial.legendre.leggauss(nodes // 2)
        rising = (points + 1.0) / 2.0  # two halves, as the triangle has a kink at its mean
        spread = np.concatenate([rising, rising + 1.0])
        height = np.full(nodes // 2 * 2, 0.5) if model == "rectangular" else 1.0 - np.abs(spread - 1.0)
        return spread, np.concatenate([weights, weights]) / 2.0 * height
    if model == "moore":
        return _levy(3 * nodes)
    shape = 1.0 if model in ("seeds", "bose_einstein") else alpha
    points, weights = _gamma(shape * layers, nodes)
    return points / shape, weights


def _gamma(shape: float, nodes: int) -> tuple[FloatArray, FloatArray]:
    from scipy import special  # imported here to keep the package's import light

    if shape <= _LAGUERRE_UP_TO:
        points, weights = special.roots_genlaguerre(nodes, shape - 1.0)
        heavy = weights > 1e-18 * weights.max()  # the far tail of the rule adds work and nothing else
        return points[heavy], weights[heavy] / special.gamma(shape)
    low, high = (special.gammaincinv(shape, q) for q in (1e-15, 1.0 - 1e-15))
    unit, weights = np.polynomial.legendre.leggauss(nodes)
    points = low + (high - low) * (unit + 1.0) / 2.0
    density = np.exp((shape - 1.0) * np.log(points) - points - special.gammaln(shape))
    return points, weights * density * (high - low) / 2.0


def _levy(nodes: int) -> tuple[FloatArray, FloatArray]:
    """T = 1 / (2 Z^2) with Z normal has E[exp(-x T)] = exp(-sqrt(x))."""
    unit, weights = np.polynomial.legendre.leggauss(nodes)
    z = (unit + 1.0) * 5.0
    return 1.0 / (2.0 * z**2), weights * 10.0 / np.sqrt(2.0 * np.pi) * np.exp(-(z**2) / 2.0)


def sample_rates(model: str, size: int, rng: np.random.Generator, alpha: float = 3.0) -> FloatArray:
    """Draws of the rate spread T, for Monte Carlo checks and wafer maps.

    >>> sample_rates("poisson", 2, np.random.default_rng(0)).tolist()
    [1.0, 1.0]
    """
    if model == "poisson":
        return np.ones(size)
    if model == "rectangular":
        return rng.uniform(0.0, 2.0, size)
    if model == "murphy":
        return rng.triangular(0.0, 1.0, 2.0, size)
    if model == "moore":
        return 1.0 / (2.0 * rng.standard_normal(size) ** 2)
    if model in ("seeds", "bose_einstein"):
        return rng.exponential(1.0, size)
    if model == "negative_binomial":
        return rng.gamma(alpha, 1.0 / alpha, size)
    raise ManufacturingError(f"yield model {model!r} is not known; choose one of {', '.join(MODELS)}")
