"""Dies with repeated blocks of which some may be bad, bins as co-products, and parametric loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from supply.manufacturing.numeric import FloatArray, ManufacturingError, Numbers, positive, share, unwrap
from supply.manufacturing.rate_mixture import rate_nodes
from supply.manufacturing.yield_models import MM2_PER_CM2

__all__ = ["SCRAP", "bin_outputs", "harvested_yield", "parametric_yield"]

SCRAP = "scrap"
_CHUNK = 1_000_000
_RECURRENCE_UP_TO = 40  # bad blocks: summing the binomial terms is faster than its distribution function up to here


def harvested_yield(
    block_area_mm2: Numbers,
    blocks: int,
    bins: Mapping[str, int] | None = None,
    other_area_mm2: Numbers = 0.0,
    defects_per_cm2: Numbers = 0.1,
    model: str = "negative_binomial",
    alpha: float = 3.0,
) -> dict[str, float | FloatArray]:
    """Share of dies by bin, where a bin allows a number of bad blocks and the rest of the die must be free of defects.

    Given the defect rate the bad blocks are binomial; the result is integrated over the spread of the rate that
    belongs to the yield model, so that clustering within a die is kept. A die goes to the strictest bin that it
    meets; the shares and scrap sum to 1.

    Args:
        block_area_mm2: area of one block.
        blocks: number of repeated blocks on the die.
        bins: largest number of bad blocks of each bin, e.g. 132 of 144 units is `{"cut": 12}`; default full 0
            and cut 12.
        other_area_mm2: area outside the blocks, where any defect kills.
        defects_per_cm2: mean defect density.
        model: yield model, as in `die_yield`.
        alpha: clustering of negative_binomial.

    Raises:
        ManufacturingError: for bins that allow more bad blocks than there are, repeat an allowance, or are named scrap.

    >>> shares = harvested_yield(4.0, 144, {"full": 0, "cut": 12}, 238.0, 0.06)
    >>> [round(shares[k], 3) for k in ("full", "cut", "scrap")]
    [0.636, 0.234, 0.13]
    """
    limits = _check_bins(blocks, {"full": 0, "cut": 12} if bins is None else bins)
    per_defect, block, other = np.broadcast_arrays(
        positive("defects_per_cm2", defects_per_cm2, zero=True) / MM2_PER_CM2,
        positive("block_area_mm2", block_area_mm2, zero=True),
        positive("other_area_mm2", other_area_mm2, zero=True),
    )
    spread, weights = rate_nodes(model, alpha)
    meets = _meets(per_defect.ravel(), block.ravel(), other.ravel(), blocks, list(limits.values()), spread, weights)
    shares = np.clip(np.diff(meets, axis=0, prepend=0.0), 0.0, 1.0)
    out = {name: unwrap(row.reshape(block.shape)) for name, row in zip(limits, shares, strict=True)}
    out[SCRAP] = unwrap(np.clip(1.0 - shares.sum(axis=0), 0.0, 1.0).reshape(block.shape))
    return out


def _check_bins(blocks: int, bins: Mapping[str, int]) -> dict[str, int]:
    if blocks < 1:
        raise ManufacturingError(f"blocks = {blocks} must be at least 1")
    if not bins or SCRAP in bins:
        raise ManufacturingError(f"bins {sorted(bins)} must name at least one bin, and none may be called {SCRAP}")
    limits = dict(sorted(bins.items(), key=lambda item: item[1]))
    for name, bad in limits.items():
        if not 0 <= bad <= blocks:
            raise ManufacturingError(f"bin {name!r} allows {bad} bad blocks of {blocks}: give 0 to {blocks}")
    if len(set(limits.values())) != len(limits):
        raise ManufacturingError(f"bins {limits} repeat an allowance, so that one of them could never fill")
    return limits


def _meets(
    rate: FloatArray,
    block: FloatArray,
    other: FloatArray,
    blocks: int,
    limits: list[int],
    spread: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Share of dies with at most each number of bad blocks and nothing else bad; shape (bins, points)."""
    step = max(1, _CHUNK // len(spread))
    parts = []
    for start in range(0, len(rate), step):
        cut = slice(start, start + step)
        local = rate[cut, None] * spread
        rest = np.exp(-other[cut, None] * local) * weights
        met = _at_most(limits, blocks, block[cut, None] * local)
        parts.append(np.stack([(share_met * rest).sum(axis=1) for share_met in met]))
    return np.concatenate(parts, axis=1)


def _at_most(limits: list[int], blocks: int, faults: FloatArray) -> list[FloatArray]:
    """P(at most k of the blocks bad) for each k, at an expected number of faults in a block."""
    if limits[-1] > _RECURRENCE_UP_TO:
        from scipy.special import bdtr  # imported here to keep the package's import light

        bad = -np.expm1(-faults)
        return [np.asarray(bdtr(float(k), blocks, bad)) for k in limits]
    odds = np.expm1(np.minimum(faults, 700.0))  # bad over good; above that no term is left anyway
    term = np.exp(-blocks * faults)
    total, out = term.copy(), []
    for bad_blocks in range(limits[-1] + 1):
        if bad_blocks in limits:
            out.append(total.copy())
        term = term * (odds * ((blocks - bad_blocks) / (bad_blocks + 1.0)))
        total = total + term
    return out


def parametric_yield(
    mean: Numbers, sigma: Numbers, low: Numbers = -np.inf, high: Numbers = np.inf
) -> float | FloatArray:
    """Share of defect-free dies inside speed or leakage limits, for a normal spread.

    Phi((high - mean) / sigma) - Phi((low - mean) / sigma); a missing limit cuts nothing.

    Raises:
        ManufacturingError: when no die lies between the limits.

    >>> round(parametric_yield(1.98, 0.10, low=1.755), 4)
    0.9878
    """
    from scipy.special import ndtr

    spread, middle = positive("sigma", sigma), np.asarray(mean, dtype=np.float64)
    inside = ndtr((np.asarray(high) - middle) / spread) - ndtr((np.asarray(low) - middle) / spread)
    if np.any(inside <= 0):
        raise ManufacturingError(
            f"no die lies between {low!r} and {high!r} at mean {mean!r}, sigma {sigma!r}: check the limits"
        )
    return unwrap(np.asarray(inside))


def bin_outputs(
    dies: Numbers, shares: Mapping[str, Numbers], parametric: Mapping[str, Numbers] | None = None
) -> dict[str, float | FloatArray]:
    """Dies by bin from dies started: co-products that a network can sell apart.

    What misses its parametric limits adds to scrap; dies are conserved.

    Raises:
        ManufacturingError: when the shares do not sum to 1, or a parametric yield names a bin that is not there.

    >>> bin_outputs(100.0, {"full": 0.5, "cut": 0.3, "scrap": 0.2}, {"full": 0.9})
    {'full': 45.0, 'cut': 30.0, 'scrap': 25.0}
    """
    limits = parametric or {}
    if unknown := set(limits) - (set(shares) - {SCRAP}):
        raise ManufacturingError(f"parametric yield for {sorted(unknown)}, which is not a bin of {sorted(shares)}")
    total = np.sum(np.broadcast_arrays(*(share(k, v, zero=True) for k, v in shares.items())), axis=0)
    if np.any(np.abs(total - 1.0) > 1e-9):
        raise ManufacturingError(f"bin shares sum to {float(np.ravel(total)[0]):.9g}, not 1: include the bin {SCRAP!r}")
    started = positive("dies", dies, zero=True)
    out = {k: started * np.asarray(v) * share(k, limits.get(k, 1.0)) for k, v in shares.items() if k != SCRAP}
    out[SCRAP] = started - sum(out.values())
    return {k: unwrap(np.asarray(v)) for k, v in out.items()}
