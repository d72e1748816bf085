"""How colours look: to colour-blind eyes, in grey, and against the page. Palettes are chosen and tested with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["VISIONS", "contrast", "distance", "lab", "luminance", "turned"]

Array = NDArray[np.float64]

#: Linear RGB as it appears: the complete deficiencies after Machado, Oliveira and Fernandes (2009), and a grey print.
VISIONS: dict[str, Array] = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
    "grey": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])


def _parts(colour: str) -> Array:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _linear(parts: Array) -> Array:
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _lab(linear: Array) -> Array:
    """CIE Lab of linear RGB, along the last axis."""
    x: Any = np.clip(linear, 0.0, 1.0) @ _XYZ.T / _WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    made: Array = np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)
    return made


def _rgb(made: Array) -> Array:
    """RGB (0 to 1) of CIE Lab, not cut: values outside mean that no screen shows the colour."""
    middle = (made[..., 0] + 16) / 116
    f = np.stack([middle + made[..., 1] / 500, middle, middle - made[..., 2] / 200], axis=-1)
    linear = (np.where(f**3 > 0.008856, f**3, (f - 16 / 116) / 7.787) * _WHITE) @ np.linalg.inv(_XYZ).T
    made_rgb: Array = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055)
    return made_rgb


def luminance(colour: str) -> float:
    """Relative luminance of WCAG, 0 (black) to 1 (white).

    >>> luminance("#ffffff"), round(luminance("#777777"), 3)
    (1.0, 0.184)
    """
    return float(_linear(_parts(colour)) @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG, 1 to 21; text needs 4.5, marks need 3.

    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str = "full") -> Array:
    """CIE Lab (D65) of a colour as one of `VISIONS` sees it.

    >>> [round(float(x)) for x in lab("#777777", "grey")]
    [50, 0, 0]
    """
    return _lab(VISIONS[vision] @ _linear(_parts(colour)))


def turned(rgb: Array, paper: float) -> Array:
    """Colours (RGB, 0 to 1) for a dark page: hue stays, lightness L of CIE Lab becomes 100 - L on paper of that grey.

    Lightness is what contrast rests on, so text keeps its contrast with what lies under it. Colour is toned down where
    no screen shows it at the new lightness.

    >>> np.round(turned(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), 0.0), 2).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    held = _lab(_linear(np.asarray(rgb, dtype=float)))
    ground = float(_lab(_linear(np.full(3, paper)))[0])
    held[..., 0] = ground + (100.0 - ground) * (100.0 - held[..., 0]) / 100.0
    out = np.full(held.shape, np.nan)
    for share in np.linspace(1.0, 0.0, 21):
        tried = _rgb(held * [1.0, share, share])
        fits = np.isnan(out[..., 0]) & ((tried >= -0.005) & (tried <= 1.005)).all(axis=-1)
        out[fits] = tried[fits]
    out[np.isnan(out)] = np.round(_rgb(held * [1.0, 0.0, 0.0]))[np.isnan(out)]
    shown: Array = np.clip(out, 0.0, 1.0)
    return shown


def distance(one: str, other: str) -> float:
    """Smallest distance in CIE Lab over all visions: in grey it is the difference in lightness.

    >>> round(distance("#000000", "#ffffff")), round(distance("#ff0000", "#00aa00")) < 10
    (100, True)
    """
    return min(float(np.linalg.norm(lab(one, v) - lab(other, v))) for v in VISIONS)
