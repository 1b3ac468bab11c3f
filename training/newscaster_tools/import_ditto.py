"""import-ditto: a released Ditto folder -> a pack."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from ditto.config import DittoConfig
from newscaster_tools import ditto_pack, graph_rewrites, graphs
from newscaster_tools.ditto_cfg import DittoSettings, load_settings
from newscaster_tools.errors import ToolError
from newscaster_tools.files import make_folder, require_file
from newscaster_tools.release import ONNX_FILES, Release, find_release, graph_rules

PACK_ROLES = tuple(ONNX_FILES)


@dataclass(frozen=True)
class Request:
    checkpoints: Path
    output: Path
    form: str = "auto"  # "auto", "onnx" or "pytorch"
    cfg: Path | None = None
    name: str = "ditto-v0.4"
    config: DittoConfig = field(default_factory=DittoConfig)


def _store_graph(source: Path, role: str, config: DittoConfig, target: Path) -> None:
    """The graph in the engine's form; a file that has it already is copied as it is."""
    model, changed = graph_rewrites.normalised(source, graph_rules(config)[role])
    if role == "motion_extractor":
        graph_rewrites.add_motion_vector(source, model, config.motion_dims, config.keypoints)
        changed = True
    if changed:
        graphs.write(model, target)
    else:
        shutil.copyfile(source, target)


def _import_onnx(release: Release, config: DittoConfig, folder: Path) -> dict[str, Path]:
    files = {}
    for role in PACK_ROLES:
        files[role] = folder / f"{role}.onnx"
        _store_graph(release.graph_file(role), role, config, files[role])
    return files


def _import_pytorch(release: Release, config: DittoConfig, folder: Path) -> dict[str, Path]:
    # Imported late: the ONNX form needs no PyTorch.
    from newscaster_tools.checkpoints import PTH_FILES
    from newscaster_tools.export_ditto import export_released

    for role, name in PTH_FILES.items():  # before minutes of exporting
        require_file(release.folder / name, f"the {role} weights of Ditto v0.4")
    hubert = release.graph_file("audio_encoder")
    require_file(hubert, "the HuBERT graph, which the release has as ONNX only")
    files = {"audio_encoder": folder / "audio_encoder.onnx"}
    _store_graph(hubert, "audio_encoder", config, files["audio_encoder"])
    files |= export_released(config, release.folder, PTH_FILES, folder)
    extractor = files["motion_extractor"]
    model = graphs.read(extractor, "the motion extractor")
    graph_rewrites.add_motion_vector(extractor, model, config.motion_dims, config.keypoints)
    graphs.write(model, extractor)
    return files


def _write_pack(request: Request, settings: DittoSettings, release: Release, folder: Path) -> None:
    config = request.config
    load = _import_onnx if release.form == "onnx" else _import_pytorch
    files = load(release, config, folder)
    rules = graph_rules(config)
    extra = {
        "motion": ((1, config.motion_dims), "f32"),
        "kp_canonical": ((1, config.keypoints, 3), "f32"),
    }
    entries = {
        role: ditto_pack.graph_entry(
            role, rules[role], files[role], extra if role == "motion_extractor" else {}
        )
        for role in PACK_ROLES
    }
    constants = folder / "constants.safetensors"
    ditto_pack.write_constants(constants, config, settings)
    manifest = ditto_pack.manifest(request.name, config, settings, entries, constants)
    (folder / "pack.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def run(request: Request) -> None:
    """Writes the pack; on failure the output folder is as it was."""
    output = request.output
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ToolError(f"{output}: exists, wanted the name of a new or empty folder")
    release = find_release(request.checkpoints, request.form, request.cfg)
    settings = load_settings(release.cfg, request.config)
    make_folder(output.parent)
    partial = output.with_name(output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    make_folder(partial)
    try:
        _write_pack(request, settings, release, partial)
        if output.exists():
            output.rmdir()
        partial.rename(output)
    except OSError as error:
        raise ToolError(f"{output}: cannot write: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
