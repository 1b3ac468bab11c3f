"""The last step of a pack: manifest and constants beside the graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ditto.config import DittoConfig
from newscaster_tools import ditto_pack, graph_rewrites, graphs
from newscaster_tools.ditto_cfg import DittoSettings
from newscaster_tools.release import ONNX_FILES, graph_rules

PACK_ROLES = tuple(ONNX_FILES)


def add_motion_vector_to(path: Path, config: DittoConfig) -> None:
    """The motion extractor's file gets the outputs that the engine reads."""
    model = graphs.read(path, "the motion extractor")
    graph_rewrites.add_motion_vector(path, model, config.motion_dims, config.keypoints)
    graphs.write(model, path)


def finish_pack(
    folder: Path,
    files: Mapping[str, Path],
    name: str,
    config: DittoConfig,
    settings: DittoSettings,
) -> dict[str, Path]:
    """Writes constants and pack.json for the graphs that lie in `folder`."""
    rules = graph_rules(config)
    motion = {
        "motion": ((1, config.motion_dims), "f32"),
        "kp_canonical": ((1, config.keypoints, 3), "f32"),
    }
    entries = {
        role: ditto_pack.graph_entry(
            role, rules[role], files[role], motion if role == "motion_extractor" else {}
        )
        for role in PACK_ROLES
    }
    constants, manifest = folder / "constants.safetensors", folder / "pack.json"
    ditto_pack.write_constants(constants, config, settings)
    content = ditto_pack.manifest(name, config, settings, entries, constants)
    manifest.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return {"constants": constants, "manifest": manifest}
