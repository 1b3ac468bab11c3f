"""The committed goldens against our networks, their ONNX exports, and upstream's modules."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch
from parity_log import record
from safetensors.numpy import load_file
from small_upstream import build_small

from ditto.config import DittoConfig
from ditto.signatures import SIGNATURES
from newscaster_tools.export_ditto import export_network, seeded_network
from newscaster_tools.golden_ditto import Floats, formula_input, golden_outputs, network_inputs

FOLDER = Path(__file__).parents[2] / "tests" / "golden" / "ditto"
TOLERANCE = 1e-4
DESCRIPTION: dict[str, Any] = json.loads((FOLDER / "goldens.json").read_text())
CONFIG = DittoConfig(width=DESCRIPTION["width"], image_size=DESCRIPTION["image_size"])
SEED: int = DESCRIPTION["seed"]
# Upstream has HuBERT as a graph only, and no entry point for the core of the dense motion.
UPSTREAM_ROLES = tuple(role for role in SIGNATURES if role != "audio_encoder")


@pytest.fixture(scope="module")
def goldens() -> dict[str, Floats]:
    return load_file(FOLDER / "goldens.safetensors")


def check(kind: str, role: str, found: dict[str, Floats], goldens: dict[str, Floats]) -> None:
    outputs = DESCRIPTION["roles"][role]["outputs"]
    assert set(found) == set(outputs)
    for name, entry in outputs.items():
        assert list(found[name].shape) == entry["shape"]
        kept = found[name].reshape(-1)[:: entry["stride"]]
        wanted = goldens[entry["tensor"]]
        assert wanted.std() > 0 or wanted.size == 1
        error = float(np.abs(kept - wanted).max())
        record(f"{kind} {role}.{name}", error, float(np.abs(wanted).max()))
        assert error <= TOLERANCE, f"{role}.{name}: max abs error {error}"


@pytest.mark.parametrize("role", SIGNATURES)
def test_networks(role: str, goldens: dict[str, Floats]) -> None:
    network = seeded_network(role, CONFIG, SEED)
    check("network", role, golden_outputs(role, network, CONFIG), goldens)


@pytest.mark.parametrize("role", SIGNATURES)
def test_exports(role: str, goldens: dict[str, Floats], tmp_path: Path) -> None:
    path = tmp_path / f"{role}.onnx"
    export_network(role, seeded_network(role, CONFIG, SEED), CONFIG, path)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {name: value.numpy() for name, value in network_inputs(role, CONFIG).items()}
    names = [item.name for item in session.get_outputs()]
    check("export", role, dict(zip(names, session.run(names, feeds), strict=True)), goldens)


@pytest.mark.parametrize("role", UPSTREAM_ROLES)
@torch.no_grad()
def test_upstream(role: str, goldens: dict[str, Floats], upstream: ModuleType) -> None:
    """The goldens are what upstream's own code computes."""
    network: Any = build_small(upstream, "warp" if role == "dense_motion_core" else role, CONFIG)
    state = seeded_network(role, CONFIG, SEED).state_dict()
    if role == "motion_generator":
        # Upstream's diffusion buffers are not in the public file.
        prefix = "model."
        inner = {key.removeprefix(prefix): value for key, value in state.items()}
        network.model.load_state_dict(inner, strict=True)
    else:
        network.load_state_dict(state, strict=True)
    inputs = tuple(network_inputs(role, CONFIG).values())
    if role == "dense_motion_core":
        dense = network.dense_motion_network
        prediction = dense.hourglass(*inputs)
        flat = prediction.view(len(prediction), -1, *prediction.shape[-2:])
        outputs = torch.softmax(dense.mask(prediction), 1), torch.sigmoid(dense.occlusion(flat))
    else:
        outputs = network(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    names = SIGNATURES[role](CONFIG).outputs
    found = {name: value.numpy() for name, value in zip(names, outputs, strict=True)}
    check("upstream", role, found, goldens)


def test_formula() -> None:
    """The first values, worked out apart from the code: crc32("kp_source") = 2948259273."""
    values = formula_input("kp_source", (2, 2))
    assert values.dtype == np.float32
    expected = [-0.15641674399375916, 0.3380104601383209, 0.03243761137127876, -0.2731351852416992]
    assert values.reshape(-1).tolist() == expected
