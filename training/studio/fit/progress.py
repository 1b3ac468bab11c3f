"""What training loops share: wall-clock limits, learning rates, averages, checkpoints, logs."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class Clock:
    """Progress 0..1 through a wall-clock limit, of which `spent` seconds are over already."""

    def __init__(self, minutes: float, spent: float = 0.0) -> None:
        self._start, self._seconds = time.monotonic() - spent, max(minutes * 60, 1e-3)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    @property
    def share(self) -> float:
        return min(1.0, self.elapsed / self._seconds)


def cosine_rate(peak: float, step: int, share: float, warm_up: int = 200) -> float:
    """Learning rate: linear warm-up over steps, cosine decay over the time that is left."""
    return peak * min(1.0, (step + 1) / warm_up) * 0.5 * (1 + math.cos(math.pi * share)) + 1e-5


def between(begin: dict[str, Tensor], end: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """Weights on the straight line between a training's begin (share 0) and end (1).

    Fine-tuning gains what was trained and loses some of the rest; a part of the way often keeps
    most of both (Wortsman et al. 2022, arXiv:2109.01903).
    """
    return {
        name: torch.lerp(begin[name].float(), value.float(), share).to(value.dtype)
        if value.is_floating_point()
        else value
        for name, value in end.items()
    }


class Average:
    """Exponential moving average of a module's floating-point state."""

    def __init__(self, module: nn.Module, decay: float = 0.999) -> None:
        self._module, self._decay, self._step = module, decay, 0
        self.state = {k: v.detach().clone() for k, v in module.state_dict().items()}

    def update(self) -> None:
        self._step += 1
        keep = min(self._decay, (1 + self._step) / (20 + self._step))
        with torch.no_grad():
            for name, value in self._module.state_dict().items():
                if value.dtype.is_floating_point:
                    self.state[name].lerp_(value, 1 - keep)
                else:
                    self.state[name].copy_(value)


class Log:
    """One JSON object a line, beside the checkpoint."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{name}.jsonl"
        self._start = time.monotonic()

    def write(self, **values: object) -> None:
        line: dict[str, object] = {"s": round(time.monotonic() - self._start, 1)}
        line.update({k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()})
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


def save_checkpoint(path: Path, **parts: object) -> None:
    """Writes beside the final name, then renames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".tmp")
    torch.save(parts, beside)
    beside.replace(path)


def load_checkpoint(path: Path, device: torch.device) -> dict[str, Any] | None:
    """None when there is none yet."""
    if not path.exists():
        return None
    loaded: dict[str, Any] = torch.load(path, map_location=device)
    return loaded


def half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights as they ship: fp16 (running statistics stay f32)."""
    return {
        k: v.half() if v.dtype == torch.float32 and "running" not in k else v
        for k, v in state.items()
    }


def restore(module: nn.Module, state: dict[str, Tensor]) -> None:
    module.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in state.items()})


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
