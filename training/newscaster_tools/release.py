"""Where the files of a Ditto release are, and what each graph of it must look like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ditto.config import DittoConfig
from ditto.signatures import SIGNATURES
from newscaster_tools.errors import ToolError
from newscaster_tools.graphs import GraphRule, TensorRule

# Role -> file of the released `ditto_onnx` folder.
ONNX_FILES = {
    "audio_encoder": "hubert.onnx",
    "motion_generator": "lmdm_v0.4_hubert.onnx",
    "stitch": "stitch_network.onnx",
    "appearance_extractor": "appearance_extractor.onnx",
    "motion_extractor": "motion_extractor.onnx",
    "warp": "warp_network.onnx",
    "decoder": "decoder.onnx",
}
HUBERT_OF_PYTORCH = "hubert_streaming_fix_kv.onnx"
# Names that the release's graphs give to inputs, where they differ from the engine's.
RELEASED_INPUTS = {"warp": {"f_s": "feature_3d"}}
CFG_PATTERN = "v0.4_hubert_cfg_*.pkl"
WHAT = {
    "audio_encoder": "Ditto's HuBERT encoder",
    "motion_generator": "Ditto's motion generator (LMDM)",
    "stitch": "Ditto's stitching network",
    "appearance_extractor": "Ditto's appearance extractor",
    "motion_extractor": "Ditto's motion extractor",
    "warp": "Ditto's warping network",
    "decoder": "Ditto's decoder",
}


@dataclass(frozen=True)
class Release:
    form: str  # "onnx" or "pytorch"
    folder: Path  # of the graphs or the .pth files
    cfg: Path

    def graph_file(self, role: str) -> Path:
        if self.form == "pytorch" and role == "audio_encoder":
            return self.folder.parent / "aux_models" / HUBERT_OF_PYTORCH
        return self.folder / ONNX_FILES[role]


def graph_rules(config: DittoConfig) -> dict[str, GraphRule]:
    """Signature that each released graph must have at these sizes."""
    rules = {}
    for role, what in WHAT.items():
        signature = SIGNATURES[role](config)
        names = RELEASED_INPUTS.get(role, {})
        rules[role] = GraphRule(
            what=what,
            inputs=tuple(
                TensorRule(
                    released=names.get(name, name),
                    name=name,
                    shape=shape,
                    dtype="i64" if name == "time_cond" else "f32",
                )
                for name, shape in signature.inputs.items()
            ),
            outputs=tuple(
                TensorRule(
                    released="",  # outputs go by order
                    name=name,
                    shape=shape,
                    leading_one_optional=role == "audio_encoder",
                )
                for name, shape in signature.outputs.items()
            ),
        )
    return rules


def _form_folder(checkpoints: Path, form: str) -> Path | None:
    """The folder that has files of this form, if any."""
    if form == "onnx":
        candidates = [checkpoints, checkpoints / "ditto_onnx"]
        names = set(ONNX_FILES.values())
    else:
        candidates = [
            checkpoints,
            checkpoints / "models",
            checkpoints / "ditto_pytorch" / "models",
        ]
        names = {"warp_network.pth", "decoder.pth", "lmdm_v0.4_hubert.pth"}
    for candidate in candidates:
        if any((candidate / name).is_file() for name in names):
            return candidate
    return None


def _find_cfg(checkpoints: Path, folder: Path) -> Path:
    """The offline cfg of the release; the folder above may have been named instead."""
    places = [checkpoints, *checkpoints.parents[:1], *folder.parents[:2]]
    for place in places:
        for where in (place / "ditto_cfg", place):
            found = sorted(where.glob(CFG_PATTERN))
            offline = [path for path in found if "online" not in path.name]
            if offline or found:
                return (offline or found)[0]
    raise ToolError(f"{checkpoints}: found no cfg pickle, wanted ditto_cfg/{CFG_PATTERN}")


def find_release(checkpoints: Path, form: str, cfg: Path | None) -> Release:
    """The PyTorch form first: its graphs take any batch size, the ONNX form's often only one."""
    if not checkpoints.is_dir():
        raise ToolError(f"{checkpoints}: no such folder, wanted a Ditto checkpoints folder")
    for name in ("pytorch", "onnx") if form == "auto" else (form,):
        folder = _form_folder(checkpoints, name)
        if folder is not None:
            return Release(name, folder, cfg or _find_cfg(checkpoints, folder))
    wanted = {"onnx": "ditto_onnx/*.onnx", "pytorch": "ditto_pytorch/models/*.pth"}
    raise ToolError(
        f"{checkpoints}: found no Ditto checkpoints,"
        f" wanted {wanted.get(form, ' or '.join(wanted.values()))}"
    )
