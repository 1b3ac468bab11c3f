"""Released PyTorch files -> networks with their weights."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ditto.config import DittoConfig
from ditto.networks import build_network
from newscaster_tools.errors import ToolError
from newscaster_tools.files import require_file

# Role -> file of the released `ditto_pytorch/models` folder.
PTH_FILES = {
    "motion_generator": "lmdm_v0.4_hubert.pth",
    "stitch": "stitch_network.pth",
    "appearance_extractor": "appearance_extractor.pth",
    "motion_extractor": "motion_extractor.pth",
    "warp": "warp_network.pth",
    "decoder": "decoder.pth",
}
# Roles whose state dict lies under a key of the file, and the submodule that it belongs to.
NESTED_KEYS = {"motion_generator": "model_state_dict", "stitch": "retarget_shoulder"}
SUBMODULES = {"motion_generator": "model"}
SHOWN_NAMES = 3

ROLE_WORDS = {role: role.replace("_", " ") for role in PTH_FILES}


def _read(path: Path, wanted: str) -> Mapping[str, Any]:
    require_file(path, wanted)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (
        RuntimeError,
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        AssertionError,
        OSError,
        OverflowError,
        MemoryError,
        zipfile.BadZipFile,
    ) as error:
        reason = str(error).strip().split("\n")[0][:160] or type(error).__name__
        raise ToolError(
            f"{path}: truncated, or not a PyTorch file of tensors ({reason}), wanted {wanted}"
        ) from error
    if not isinstance(content, Mapping):
        raise ToolError(f"{path}: found a {type(content).__name__}, wanted {wanted}")
    return content


def _state_dict(path: Path, role: str) -> dict[str, torch.Tensor]:
    wanted = f"the state dict of Ditto's {ROLE_WORDS[role]} network"
    content = _read(path, wanted)
    key = NESTED_KEYS.get(role)
    if key is not None:
        if not isinstance(content.get(key), Mapping):
            raise ToolError(f"{path}: has no entry '{key}', wanted {wanted} under that key")
        content = content[key]
    state: dict[str, torch.Tensor] = {}
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise ToolError(f"{path}: entry '{name}' is no tensor, wanted {wanted}")
        # Stitching was saved by a data-parallel wrapper.
        state[name.removeprefix("module.")] = value
    return state


def _names(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:SHOWN_NAMES])
    return shown if len(names) <= SHOWN_NAMES else f"{shown} and {len(names) - SHOWN_NAMES} more"


def _check(path: Path, network: nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    wanted = network.state_dict()
    missing = wanted.keys() - state.keys()
    foreign = state.keys() - wanted.keys()
    if missing or foreign:
        parts = [f"lacks {_names(missing)}"] if missing else []
        parts += [f"has unknown {_names(foreign)}"] if foreign else []
        raise ToolError(f"{path}: {'; '.join(parts)}, wanted the {len(wanted)} public names")
    for name, value in state.items():
        if value.shape != wanted[name].shape:
            raise ToolError(
                f"{path}: '{name}' has shape {list(value.shape)}, wanted {list(wanted[name].shape)}"
            )
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ToolError(f"{path}: '{name}' has values that are not finite, wanted numbers")


def load_network(path: Path, role: str, config: DittoConfig) -> nn.Module:
    """The role's network with the weights of a released file."""
    state = _state_dict(path, role)
    network = build_network(role, config)
    target = network.get_submodule(SUBMODULES.get(role, ""))
    _check(path, target, state)
    target.load_state_dict(state, strict=True)
    return network


def models_folder(folder: Path) -> Path:
    """The folder with the `.pth` files: `folder` itself, or the release's place for them."""
    for candidate in (folder, folder / "models", folder / "ditto_pytorch" / "models"):
        if any((candidate / name).is_file() for name in PTH_FILES.values()):
            return candidate
    raise ToolError(f"{folder}: found no Ditto .pth file, wanted {', '.join(PTH_FILES.values())}")
