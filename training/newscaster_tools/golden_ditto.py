"""golden-ditto: small reference inputs and outputs of the seeded networks.

Inputs are not stored: they are a formula of the element's index (`formula_input`), which a test in
any language repeats exactly. Of large outputs every `stride`-th element is stored.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save
from torch import nn

from ditto.config import DittoConfig
from ditto.signatures import SIGNATURES
from newscaster_tools.export_ditto import exportable, seeded_network
from newscaster_tools.files import make_folder, replacing

Floats = npt.NDArray[np.float32]

MAX_STORED = 6000  # elements of one output
MULTIPLIER = 2654435769  # 2^32 / golden ratio: a low-discrepancy walk over the range
# (lowest, highest) of inputs; others go from -1 to 1.
RANGES = {
    "image": (0.0, 1.0),
    "input_values": (-0.1, 0.1),
    "kp_source": (-0.4, 0.4),
    "kp_driving": (-0.4, 0.4),
}
TIMESTEP = 499
BATCH = 2  # where the batch is free


def formula_input(
    name: str, shape: tuple[int, ...], limits: tuple[float, float] | None = None
) -> Floats:
    """Element i is low + (high - low) * u / 2^24, with u = ((i + 1) * MULTIPLIER + crc) >> 8.

    Arithmetic is modulo 2^32; crc is the CRC-32 of the tensor's name; the value is rounded to f32
    once, from double.
    """
    low, high = limits or RANGES.get(name, (-1.0, 1.0))
    index = np.arange(1, math.prod(shape) + 1, dtype=np.uint64)
    word = (index * np.uint64(MULTIPLIER) + np.uint64(zlib.crc32(name.encode()))) & np.uint64(
        0xFFFFFFFF
    )
    unit = (word >> np.uint64(8)).astype(np.float64) / 2.0**24
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def network_inputs(role: str, config: DittoConfig) -> dict[str, torch.Tensor]:
    signature = SIGNATURES[role](config)
    inputs = {}
    for name, shape in signature.inputs.items():
        if name == "time_cond":
            inputs[name] = torch.tensor([TIMESTEP])
            continue
        full = (BATCH, *shape[1:]) if signature.batched else shape
        inputs[name] = torch.from_numpy(formula_input(name, full))
    return inputs


def stored(output: Floats) -> tuple[Floats, int]:
    """What is kept of an output, and its stride."""
    flat = output.reshape(-1)
    stride = -(-flat.size // MAX_STORED)
    return np.ascontiguousarray(flat[::stride]), stride


@torch.no_grad()
def golden_outputs(role: str, network: nn.Module, config: DittoConfig) -> dict[str, Floats]:
    """Outputs of the network as it is exported."""
    outputs = exportable(role, network)(*network_inputs(role, config).values())
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    names = SIGNATURES[role](config).outputs
    return {name: value.numpy() for name, value in zip(names, outputs, strict=True)}


def _entry(role: str, config: DittoConfig, kept: Mapping[str, tuple[Floats, int, Any]]) -> Any:  # noqa: ANN401
    inputs = network_inputs(role, config)
    return {
        "inputs": {
            name: {
                "shape": list(value.shape),
                **(
                    {"value": TIMESTEP}
                    if name == "time_cond"
                    else {"range": list(RANGES.get(name, (-1.0, 1.0)))}
                ),
            }
            for name, value in inputs.items()
        },
        "outputs": {
            name: {"shape": list(shape), "stride": stride, "tensor": f"{role}.{name}"}
            for name, (_, stride, shape) in kept.items()
        },
    }


def write_goldens(config: DittoConfig, seed: int, folder: Path) -> dict[str, Path]:
    """goldens.safetensors and goldens.json."""
    make_folder(folder)
    tensors: dict[str, Floats] = {}
    roles = {}
    for role in SIGNATURES:
        outputs = golden_outputs(role, seeded_network(role, config, seed), config)
        kept = {name: (*stored(value), value.shape) for name, value in outputs.items()}
        for name, (values, _, _) in kept.items():
            tensors[f"{role}.{name}"] = values
        roles[role] = _entry(role, config, kept)
    description = {
        "seed": seed,
        "width": config.width,
        "image_size": config.image_size,
        "input_multiplier": MULTIPLIER,
        "roles": roles,
    }
    files = {"tensors": folder / "goldens.safetensors", "description": folder / "goldens.json"}
    with replacing(files["tensors"]) as partial:
        partial.write_bytes(save(tensors))
    with replacing(files["description"]) as partial:
        partial.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return files
