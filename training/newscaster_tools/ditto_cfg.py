"""The settings of a release's cfg that a pack needs, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ditto.config import DittoConfig
from newscaster_tools.cfg_pickle import Plain, load_plain
from newscaster_tools.errors import ToolError

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class DittoSettings:
    """Upstream's run-time settings; what the cfg leaves out has upstream's default."""

    emotion: tuple[int, ...] = (4,)
    overlap_frames: int = 10
    sampling_steps: int = 50
    smoothing_frames: int = 3
    source_smoothing_frames: int = 13
    online: bool = False
    crop_scale: float = 2.3
    crop_shift_x: float = 0.0
    crop_shift_y: float = -0.125
    crop_rotate: bool = True
    relative: bool = True
    stitching: bool = True
    clip: Floats | None = None  # [2, dims]: lowest and highest motion values
    blink: Floats | None = None  # [frames, 63]: expression offsets of one blink
    blink_gap: int = 0  # -1 never, 0 random, else frames between blinks
    reset_interval: int = 0  # windows between resets of the previous motion; 0 never
    reset_kept: tuple[int, int] | None = None  # dims that a reset leaves alone


class _Reader:
    """Typed access to default_kwargs with errors that name file and key."""

    def __init__(self, path: Path, values: Mapping[Any, Plain]) -> None:
        self.path = path
        self.values = values

    def fail(self, key: str, wanted: str) -> ToolError:
        value = self.values[key]
        shown = f"an array {value.shape}" if isinstance(value, np.ndarray) else repr(value)[:80]
        return ToolError(f"{self.path}: default_kwargs.{key}: found {shown}, wanted {wanted}")

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(key, f"an integer in {low}..{high}")
        return value

    def number(self, key: str, default: float, low: float, high: float) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fail(key, "a number")
        if not low <= value <= high:
            raise self.fail(key, f"a number in {low}..{high}")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, "True or False")
        return value

    def indices(self, key: str, default: int, count: int) -> tuple[int, ...]:
        value = self.values.get(key, default)
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        valid = all(type(item) is int and 0 <= item < count for item in items)
        if not items or not valid or len(set(items)) != len(items):
            raise self.fail(key, f"different integers in 0..{count - 1}")
        return tuple(items)

    def pair(self, key: str, high: int) -> tuple[int, int] | None:
        value = self.values.get(key)
        if value is None:
            return None
        items = list(value) if isinstance(value, (list, tuple)) else []
        if len(items) != 2 or not all(type(item) is int for item in items):
            raise self.fail(key, "two integers")
        if not 0 <= items[0] < items[1] <= high:
            raise self.fail(key, f"0 <= start < end <= {high}")
        return items[0], items[1]

    def array(self, key: str, rows: int | None, columns: int) -> Floats | None:
        """[rows, columns]; singleton axes in between are dropped."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            array = np.asarray(value, dtype=np.float32)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.fail(key, "an array of numbers") from error
        count = rows if rows is not None else max(array.size // columns, 1)
        if array.size != count * columns or array.shape[-1:] not in ((columns,), (1,)):
            raise self.fail(key, f"an array of {rows if rows else 'n'} x {columns} numbers")
        if not np.isfinite(array).all():
            raise self.fail(key, "finite numbers")
        return np.ascontiguousarray(array.reshape(count, columns))


def _section(path: Path, content: Plain, key: str) -> Mapping[Any, Plain]:
    value = content.get(key) if isinstance(content, dict) else None
    if not isinstance(value, dict):
        raise ToolError(f"{path}: has no section '{key}', wanted a Ditto cfg pickle")
    return value


def _check_model_section(path: Path, section: Mapping[Any, Plain], config: DittoConfig) -> None:
    """The cfg must belong to the v0.4 HuBERT model."""
    wanted: dict[str, Plain] = {
        "w2f_type": "hubert",
        "motion_feat_dim": config.motion_dims,
        "audio_feat_dim": config.condition_dims,
        "seq_frames": config.sequence_frames,
        "use_emo": True,
        "use_sc": True,
        "use_eye_open": True,
        "use_eye_ball": True,
    }
    for key, value in wanted.items():
        if key not in section or section[key] != value or type(section[key]) is not type(value):
            found = repr(section.get(key, "nothing"))[:80]
            raise ToolError(f"{path}: audio2motion_cfg.{key}: found {found}, wanted {value!r}")


def load_settings(path: Path, config: DittoConfig) -> DittoSettings:
    """Reads a cfg pickle."""
    content = load_plain(path)
    _section(path, content, "base_cfg")
    _check_model_section(path, _section(path, content, "audio2motion_cfg"), config)
    read = _Reader(path, _section(path, content, "default_kwargs"))
    frames = config.sequence_frames
    usual = DittoSettings()
    gap = read.values.get("delta_eye_open_n", usual.blink_gap)
    if type(gap) is not int or not -1 <= gap <= 100_000:
        raise read.fail("delta_eye_open_n", "an integer in -1..100000")
    return DittoSettings(
        emotion=read.indices("emo", usual.emotion[0], config.emotions),
        overlap_frames=read.integer("overlap_v2", usual.overlap_frames, 1, frames - 1),
        sampling_steps=read.integer("sampling_timesteps", usual.sampling_steps, 1, 1000),
        smoothing_frames=read.integer("smo_k_d", usual.smoothing_frames, 1, 99),
        source_smoothing_frames=read.integer("smo_k_s", usual.source_smoothing_frames, 1, 999),
        online=read.flag("online_mode", usual.online),
        crop_scale=read.number("crop_scale", usual.crop_scale, 0.1, 10.0),
        crop_shift_x=read.number("crop_vx_ratio", usual.crop_shift_x, -1.0, 1.0),
        crop_shift_y=read.number("crop_vy_ratio", usual.crop_shift_y, -1.0, 1.0),
        crop_rotate=read.flag("crop_flag_do_rot", usual.crop_rotate),
        relative=read.flag("relative_d", usual.relative),
        stitching=read.flag("flag_stitching", usual.stitching),
        clip=read.array("v_min_max_for_clip", 2, config.motion_dims),
        blink=read.array("delta_eye_arr", None, 3 * config.keypoints),
        blink_gap=gap,
        reset_interval=read.integer("fix_kp_cond", usual.reset_interval, 0, 100_000),
        reset_kept=read.pair("fix_kp_cond_dim", config.motion_dims),
    )
