"""The importer on whole releases: sound ones, and ones with files missing or foreign."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from release_folder import CONFIG, SEED, SIZES, write_onnx_release, write_pytorch_release
from safetensors.numpy import load_file

from ditto.seeded import uniform
from newscaster_tools.cli import main
from newscaster_tools.export_ditto import seeded_network
from newscaster_tools.files import sha256_of
from newscaster_tools.release import ONNX_FILES


@pytest.fixture(scope="module")
def onnx_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_onnx_release(tmp_path_factory.mktemp("onnx"))


@pytest.fixture(scope="module")
def pytorch_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pytorch_release(tmp_path_factory.mktemp("pytorch"))


def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return uniform(11, name, shape) * np.float32(0.3)


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check_pack(pack: Path) -> dict:
    """Files, hashes and tensors are as the manifest says."""
    manifest = json.loads((pack / "pack.json").read_text())
    assert sha256_of(pack / manifest["constants"]["file"]) == manifest["constants"]["sha256"]
    constants = load_file(pack / manifest["constants"]["file"])
    assert constants["motion_mean"].shape == (CONFIG.motion_dims,)
    assert constants["blink_offsets"].shape == (15, 63)
    assert (constants["motion_clip_low"] <= constants["motion_clip_high"]).all()
    assert set(manifest["graphs"]) == set(ONNX_FILES)
    for role, graph in manifest["graphs"].items():
        path = pack / graph["file"]
        assert sha256_of(path) == graph["sha256"], role
        run = session(path)
        assert {item.name for item in run.get_inputs()} == set(graph["inputs"])
        assert {item.name for item in run.get_outputs()} == set(graph["outputs"])
        for word, tensor in graph["bindings"].items():
            assert tensor in graph["inputs"] or tensor in graph["outputs"], f"{role} {word}"
    names = {span["name"]: span["size"] for span in manifest["motion"]["layout"]}
    assert sum(names.values()) == manifest["motion"]["dims"] == CONFIG.motion_dims
    rows = manifest["motion"]["conditions"]
    assert sum(span["size"] for span in rows) == CONFIG.condition_dims
    warp = onnx.load(pack / "warp.onnx")
    samplers = [node for node in warp.graph.node if "GridSample" in node.op_type]
    assert [node.op_type for node in samplers] == ["GridSample"] * 2
    assert warp.opset_import[0].version >= 20
    return manifest


def check_same_results(pack: Path) -> None:
    """The imported graphs compute what the networks compute."""
    volume = values("volume", (1, CONFIG.volume_channels, 16, 32, 32))
    source, driving = values("source", (1, 21, 3)), values("driving", (1, 21, 3))
    feeds = {"f_s": volume, "kp_source": source, "kp_driving": driving}
    (found,) = session(pack / "warp.onnx").run(None, feeds)
    tensors = [torch.from_numpy(item) for item in (volume, source, driving)]
    wanted = seeded_network("warp", CONFIG, SEED)(*tensors).numpy()
    assert np.abs(found - wanted).max() < 1e-4
    audio = values("audio", (1, 6480))
    (rows,) = session(pack / "audio_encoder.onnx").run(None, {"input_values": audio})
    wanted = seeded_network("audio_encoder", CONFIG, SEED)(torch.from_numpy(audio)).numpy()
    assert rows.shape == (1, 20, CONFIG.hubert_dims)
    assert np.abs(rows - wanted).max() < 1e-4
    image = values("image", (1, 3, 128, 128)) + np.float32(0.5)
    run = session(pack / "motion_extractor.onnx")
    parts = dict(
        zip([item.name for item in run.get_outputs()], run.run(None, {"image": image}), strict=True)
    )
    order = ("pitch", "yaw", "roll", "t", "exp")
    joined = np.concatenate([parts["scale"] - 1, *(parts[name] for name in order)], axis=1)
    assert np.array_equal(parts["motion"], joined)
    assert np.array_equal(parts["kp_canonical"].reshape(1, 63), parts["kp"])


def test_onnx_release(onnx_release: Path, tmp_path: Path) -> None:
    assert main(["import-ditto", str(onnx_release), "-o", str(tmp_path / "pack"), *SIZES]) == 0
    check_pack(tmp_path / "pack")
    check_same_results(tmp_path / "pack")


def test_pytorch_release(pytorch_release: Path, tmp_path: Path) -> None:
    assert main(["import-ditto", str(pytorch_release), "-o", str(tmp_path / "pack"), *SIZES]) == 0
    check_pack(tmp_path / "pack")
    check_same_results(tmp_path / "pack")
    run = session(tmp_path / "pack" / "warp.onnx")
    assert run.get_inputs()[0].shape[0] == "batch"


def fails(release: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of the error."""
    assert main(["import-ditto", str(release), "-o", str(output), *SIZES]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().split("\n")
    assert len(lines) == 1
    assert not output.exists()
    return lines[0]


@pytest.mark.parametrize("name", ONNX_FILES.values())
def test_missing_graph(
    name: str, onnx_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "release"
    shutil.copytree(onnx_release, release, copy_function=lambda a, b: Path(b).symlink_to(a))
    (release / "ditto_onnx" / name).unlink()
    line = fails(release, tmp_path / "pack", capsys)
    assert name in line
    assert "no such file" in line


def test_swapped_graphs(
    onnx_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "release"
    shutil.copytree(onnx_release, release, copy_function=lambda a, b: Path(b).symlink_to(a))
    target = release / "ditto_onnx" / "decoder.onnx"
    target.unlink()
    target.symlink_to(onnx_release / "ditto_onnx" / "stitch_network.onnx")
    line = fails(release, tmp_path / "pack", capsys)
    assert "decoder.onnx" in line
    assert "feature" in line


def test_other_width(
    onnx_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "pack"
    assert main(["import-ditto", str(onnx_release), "-o", str(output)]) == 2
    assert "audio_feat_dim" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["missing", "truncated", "foreign"])
def test_damaged_pth(
    damage: str, pytorch_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "release"
    shutil.copytree(pytorch_release, release, copy_function=lambda a, b: Path(b).symlink_to(a))
    target = release / "ditto_pytorch" / "models" / "stitch_network.pth"
    content = target.read_bytes()
    target.unlink()
    if damage == "truncated":
        target.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        source = pytorch_release / "ditto_pytorch" / "models" / "decoder.pth"
        target.symlink_to(source)
    line = fails(release, tmp_path / "pack", capsys)
    assert "stitch_network.pth" in line


def test_no_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "wanted ditto_onnx" in fails(tmp_path, tmp_path / "pack", capsys)
    assert "no such folder" in fails(tmp_path / "nowhere", tmp_path / "pack", capsys)


def test_output_that_exists(
    onnx_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").write_text("x")
    assert main(["import-ditto", str(onnx_release), "-o", str(tmp_path), *SIZES]) == 2
    assert "new or empty folder" in capsys.readouterr().err
    assert (tmp_path / "kept").read_text() == "x"


def test_seeded_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """export-ditto --pack makes what import-ditto makes, less the cfg's constants."""
    output = tmp_path / "pack"
    assert main(["export-ditto", "--seeded", str(SEED), "--pack", "-o", str(output), *SIZES]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert {"manifest", "constants", "dense_motion_core", *ONNX_FILES} == set(written)
    manifest = json.loads((output / "pack.json").read_text())
    assert "clip" not in manifest["motion"]
    assert manifest["motion"]["composition"]["blink"]["offsets"] is None
    for graph in manifest["graphs"].values():
        assert sha256_of(output / graph["file"]) == graph["sha256"]
    check_same_results(output)


def test_pack_of_some_roles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seeded", "1", "--pack", "--roles", "stitch", "-o", str(tmp_path / "pack")]
    assert main(["export-ditto", *arguments]) == 2
    assert "--pack" in capsys.readouterr().err
