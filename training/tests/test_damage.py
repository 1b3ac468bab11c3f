"""Property tests: whatever happens to a file, the readers answer with a ToolError or a value.

Each test tries a few hundred damages of a seeded generator; NEWSCASTER_FUZZ_ROUNDS multiplies that.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from release_folder import CONFIG, cfg_content, legacy_samplers, released_graph

from newscaster_tools import graph_rewrites, graphs
from newscaster_tools.cfg_pickle import load_plain
from newscaster_tools.checkpoints import load_network
from newscaster_tools.ditto_cfg import load_settings
from newscaster_tools.errors import ToolError
from newscaster_tools.export_ditto import seeded_network
from newscaster_tools.release import graph_rules

ROUNDS = int(os.environ.get("NEWSCASTER_FUZZ_ROUNDS", "1"))
Reader = Callable[[Path], Any]


def damages(content: bytes, count: int) -> list[bytes]:
    """Truncations, bit flips, overwritten stretches and doubled stretches."""
    rng = np.random.default_rng(len(content))
    found = [b"\x00", content[:1], content[: len(content) // 2], content + content]
    while len(found) < count * ROUNDS:
        data = bytearray(content)
        kind = int(rng.integers(4))
        at = int(rng.integers(len(data)))
        if kind == 0:
            del data[at:]
        elif kind == 1:
            for _ in range(int(rng.integers(1, 4))):
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            length = int(rng.integers(1, 9))
            data[at : at + length] = rng.bytes(length)
        else:
            data[at:at] = data[at : at + int(rng.integers(1, 65))]
        found.append(bytes(data))
    return found


def survive(path: Path, content: bytes, count: int, read: Reader) -> int:
    """Damages that were noticed. Anything but a ToolError fails the test."""
    noticed = 0
    for index, data in enumerate(damages(content, count)):
        path.write_bytes(data)
        try:
            read(path)
        except ToolError as error:
            assert str(error).startswith(str(path)), f"damage {index}: {error}"
            assert "\n" not in str(error), f"damage {index}: {error}"
            noticed += 1
    return noticed


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_cfg_round_trip(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "cfg.pkl"
    content = cfg_content()
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    settings = load_settings(path, CONFIG)
    assert settings.clip is not None
    assert settings.blink is not None
    assert np.array_equal(settings.clip, content["default_kwargs"]["v_min_max_for_clip"])
    assert np.array_equal(settings.blink, content["default_kwargs"]["delta_eye_arr"])
    assert (settings.emotion, settings.sampling_steps) == ((4,), 50)


def test_cfg_column_major_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "cfg.pkl"
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    sent = {"a": array, "b": np.float32(1.5), "c": [(1, "x")], "big": np.arange(3, dtype=">i4")}
    path.write_bytes(pickle.dumps(sent))
    found = load_plain(path)
    assert np.array_equal(found["a"], array)
    assert (found["b"], found["c"]) == (1.5, [(1, "x")])
    assert found["big"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", [2, 4])
def test_damaged_cfg(protocol: int, tmp_path: Path) -> None:
    content = pickle.dumps(cfg_content(), protocol=protocol)
    noticed = survive(tmp_path / "cfg.pkl", content, 1500, lambda path: load_settings(path, CONFIG))
    assert noticed > 500


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch evil",))


def hostile_pickles() -> dict[str, bytes]:
    """Pickles that try to run code, to take memory, or hold what is not plain."""
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    laughs: list[Any] = [0] * 10
    for _ in range(20):
        laughs = [laughs] * 10
    loop: list[Any] = []
    loop.append(loop)
    huge = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I99999999999\ntS'b'\ntR."
    return {
        "call": pickle.dumps(Evil()),
        "getattr": b"cbuiltins\ngetattr\n.",
        "load": b"cnumpy\nload\n(S'x'\ntR.",
        "objects": pickle.dumps(np.array([{}, []], dtype=object)),
        "structured": pickle.dumps(np.zeros(2, dtype=[("a", "f4")])),
        "huge array": huge,
        "long text": b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"x.",
        "long memo": b"\x80\x04r\xff\xff\xff\xff.",
        "deep": pickle.dumps(deep),
        "laughs": pickle.dumps(laughs),
        "loop": pickle.dumps(loop),
        "bytearray": pickle.dumps(bytearray(b"x")),
        "complex": pickle.dumps(1j),
    }


@pytest.mark.parametrize("name", hostile_pickles())
def test_hostile_pickle(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cfg.pkl"
    path.write_bytes(hostile_pickles()[name])
    with pytest.raises(ToolError, match="cfg pickle"):
        load_plain(path)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("emo", 8),
        ("emo", []),
        ("emo", "happy"),
        ("overlap_v2", 80),
        ("overlap_v2", True),
        ("sampling_timesteps", 0),
        ("crop_scale", float("nan")),
        ("v_min_max_for_clip", np.zeros((2, 5))),
        ("v_min_max_for_clip", np.full((2, 265), np.inf)),
        ("delta_eye_arr", np.zeros((15, 62))),
        ("delta_eye_arr", "none"),
        ("fix_kp_cond_dim", [5, 5]),
        ("online_mode", 1),
    ],
)
def test_foreign_setting(key: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "cfg.pkl"
    path.write_bytes(pickle.dumps(cfg_content(**{key: value})))
    with pytest.raises(ToolError, match=f"default_kwargs.{key}"):
        load_settings(path, CONFIG)


@pytest.fixture(scope="module")
def warp_graph(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("warp") / "warp.onnx"
    released_graph("warp", path)
    return path.read_bytes()


def small_tensors(content: bytes) -> bytes:
    """The same graph with its large weights cut to one value, so that damage hits the structure.

    The readers see shapes only; `dims` and data stay in agreement.
    """
    model = onnx.load_model_from_string(content)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.raw_data) > 64:
            del tensor.dims[:]
            tensor.dims.append(1)
            tensor.raw_data = b"\0" * 4
    return model.SerializeToString()


def normalise(path: Path) -> None:
    graph_rewrites.normalised(path, graph_rules(CONFIG)["warp"])


def test_damaged_graph(warp_graph: bytes, tmp_path: Path) -> None:
    content = small_tensors(warp_graph)
    assert survive(tmp_path / "warp.onnx", content, 1500, normalise) > 700


def test_damaged_weights(warp_graph: bytes, tmp_path: Path) -> None:
    assert survive(tmp_path / "warp.onnx", warp_graph, 40, normalise) > 5


def test_damaged_pth(tmp_path: Path) -> None:
    network = seeded_network("stitch", CONFIG, 1)
    buffer = io.BytesIO()
    torch.save({"retarget_shoulder": dict(network.state_dict())}, buffer)
    noticed = survive(
        tmp_path / "stitch_network.pth",
        buffer.getvalue(),
        200,
        lambda path: load_network(path, "stitch", CONFIG),
    )
    assert noticed > 50


def edited(content: bytes, edit: Callable[[onnx.ModelProto], object]) -> bytes:
    model = onnx.load_model_from_string(content)
    edit(model)
    return model.SerializeToString()


def _oversize(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = 1 << 50


def _negative(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = -4


def _not_finite(model: onnx.ModelProto) -> None:
    tensor = next(t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT)
    tensor.raw_data = np.full(len(tensor.raw_data) // 4, np.nan, dtype="<f4").tobytes()


def _external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/hostname"


def _opset(version: int) -> Callable[[onnx.ModelProto], None]:
    def edit(model: onnx.ModelProto) -> None:
        model.opset_import[0].version = version

    return edit


def _foreign_node(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "RunProgram"


def _sampler(key: str, value: object) -> Callable[[onnx.ModelProto], None]:
    def edit(model: onnx.ModelProto) -> None:
        node = next(node for node in model.graph.node if node.op_type == "GridSample3D")
        kept = [item for item in node.attribute if item.name != key]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(key, value)])

    return edit


def _nested(model: onnx.ModelProto) -> None:
    graph = onnx.GraphProto()
    for _ in range(12):
        outer = onnx.GraphProto()
        node = outer.node.add()
        node.op_type = "If"
        node.attribute.append(helper.make_attribute("then_branch", graph))
        graph = outer
    model.graph.node.extend(graph.node)


def _output_shape(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7


def _half(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_oversize, "bytes, wanted"),
        (_negative, "wanted sizes >= 0"),
        (_not_finite, "not finite"),
        (_external, "another file"),
        (_opset(9), "opset"),
        (_opset(99), "opset"),
        (_foreign_node, "RunProgram"),
        (_sampler("interpolation_mode", 5), "mode 5"),
        (_sampler("padding_mode", "wrap"), "padding_mode"),
        (_sampler("align_corners", 3), "align_corners 3"),
        (_nested, "nested"),
        (_output_shape, "shape"),
        (_half, "element type"),
    ],
)
def test_foreign_graph(
    edit: Callable[[onnx.ModelProto], None], words: str, warp_graph: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "warp.onnx"
    path.write_bytes(edited(warp_graph, edit))
    with pytest.raises(ToolError, match=words) as caught:
        normalise(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("spelling", ["plug-in", "words", "opset 16", "opset 20"])
def test_sampler_spellings(spelling: str, warp_graph: bytes, tmp_path: Path) -> None:
    """Every spelling of the sampler ends in the same node."""

    def edit(model: onnx.ModelProto) -> None:
        if spelling == "plug-in":
            assert all(node.op_type != "GridSample" for node in model.graph.node)
            return
        for node in model.graph.node:
            if node.op_type == "GridSample3D":
                node.CopyFrom(_plain(node, spelling))
        model.opset_import[0].version = 20 if spelling == "opset 20" else 16

    path = tmp_path / "warp.onnx"
    path.write_bytes(edited(warp_graph, edit))
    model, _ = graph_rewrites.normalised(path, graph_rules(CONFIG)["warp"])
    samplers = [node for node in model.graph.node if "Sample" in node.op_type]
    assert len(samplers) == 2
    for node in samplers:
        assert (node.op_type, node.domain) == ("GridSample", "")
        found = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        assert found == {"align_corners": 0, "mode": b"linear", "padding_mode": b"zeros"}
    assert model.opset_import[0].version == graphs.OPSET


def _plain(node: onnx.NodeProto, spelling: str) -> onnx.NodeProto:
    op_type = "GridSample3D" if spelling == "words" else "GridSample"
    key = "interpolation_mode" if spelling == "words" else "mode"
    settings: dict[str, Any] = {
        key: "linear" if spelling == "opset 20" else "bilinear",
        "padding_mode": "zeros",
        "align_corners": 0,
    }
    return helper.make_node(op_type, list(node.input), list(node.output), **settings)


def test_older_reductions_and_splits(tmp_path: Path) -> None:
    """Axes become inputs and splits say their count when a graph is raised to opset 20."""
    value = helper.make_tensor_value_info
    floats = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=1),
        helper.make_node("Split", ["m"], ["a", "b"], axis=2),
        helper.make_node("GridSample3D", ["a", "g"], ["y"], align_corners=0),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", floats, [1, 3, 4, 4, 4]), value("g", floats, [1, 2, 4, 4, 3])],
        [value("y", floats, [1, 1, 2, 4, 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert graph_rewrites.normalise_samplers(tmp_path, model)
    graphs.check_model(tmp_path, model)
    assert len(model.graph.node[0].input) == 2
    assert helper.get_attribute_value(model.graph.node[1].attribute[-1]) == 2


def test_legacy_helper_makes_plugin_nodes(warp_graph: bytes) -> None:
    model = onnx.load_model_from_string(warp_graph)
    assert legacy_samplers(model) == 0  # all were turned already
    assert sum(node.op_type == "GridSample3D" for node in model.graph.node) == 2
