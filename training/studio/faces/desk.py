"""The news desk in front of a presenter's canvas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

_TOP_Y, _TOP_HEIGHT, _REFLECTION_PX, _BLUR_PX = 765, 58, 180, 14
_BASE = np.array([32.0, 34.0, 38.0])
_EDGE_LIGHT, _ACCENT_HEIGHT = 20.0, 3


def add_desk(
    canvas: npt.NDArray[np.uint8], accent: tuple[float, float, float]
) -> npt.NDArray[np.uint8]:
    """`canvas` [1080, 1920, 3] with a desk over its lower part, its edge in `accent` (0..1)."""
    out = canvas.astype(np.float64)
    height = len(out)
    mirrored = canvas[_TOP_Y - _REFLECTION_PX : _TOP_Y][::-1]
    soft = np.asarray(Image.fromarray(mirrored).filter(ImageFilter.GaussianBlur(_BLUR_PX)))
    front = _TOP_Y + _TOP_HEIGHT
    out[_TOP_Y:front] = _BASE * 1.5 + 0.22 * soft[:_TOP_HEIGHT]
    out[front:] = _BASE * np.linspace(1.0, 0.55, height - front)[:, None, None]
    out[front : front + _ACCENT_HEIGHT] = np.array(accent) * 255 * 0.7
    out[_TOP_Y : _TOP_Y + 2] = out[_TOP_Y : _TOP_Y + 2] * 1.5 + _EDGE_LIGHT
    return np.clip(out, 0, 255).round().astype(np.uint8)
