"""import-ditto: a released Ditto folder -> a pack."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from ditto.config import DittoConfig
from newscaster_tools import graph_rewrites, graphs
from newscaster_tools.ditto_cfg import load_settings
from newscaster_tools.errors import ToolError
from newscaster_tools.files import make_folder, require_file
from newscaster_tools.pack_folder import PACK_ROLES, add_motion_vector_to, finish_pack
from newscaster_tools.release import Release, find_release, graph_rules


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
    add_motion_vector_to(files["motion_extractor"], config)
    return files


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
        load = _import_onnx if release.form == "onnx" else _import_pytorch
        files = load(release, request.config, partial)
        finish_pack(partial, files, request.name, request.config, settings)
        if output.exists():
            output.rmdir()
        partial.rename(output)
    except OSError as error:
        raise ToolError(f"{output}: cannot write: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
