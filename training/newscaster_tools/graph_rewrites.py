"""Rewrites that bring a released graph into the engine's form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from newscaster_tools.errors import ToolError
from newscaster_tools.graphs import (
    DTYPES,
    LEGACY_SAMPLER,
    OPSET,
    GraphRule,
    all_graphs,
    check_model,
    check_signature,
    opset_of,
    read,
    shape_of,
)

SAMPLER_MODES = {0: "linear", 1: "nearest"}
SAMPLER_PADDINGS = {0: "zeros", 1: "border", 2: "reflection"}
OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}
# Reductions whose axes became an input in opset 18.
REDUCTIONS = frozenset(
    f"Reduce{kind}"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
)


def _attributes(path: Path, node: NodeProto) -> dict[str, object]:
    try:
        return {item.name: helper.get_attribute_value(item) for item in node.attribute}
    except (ValueError, TypeError) as error:
        raise ToolError(f"{path}: node '{node.name}' has an attribute of no type") from error


def _choice(path: Path, node: NodeProto, key: str, value: object, names: dict[int, str]) -> str:
    """An enumeration that exporters wrote as a number or as a word."""
    if isinstance(value, bytes):
        word = value.decode("ascii", "replace")
        word = OLD_MODES.get(word, word)
        if word in names.values():
            return word
    elif isinstance(value, int) and value in names:
        return names[value]
    raise ToolError(
        f"{path}: node '{node.name}' has {key} {value!r}, wanted one of {list(names.values())}"
    )


def _normal_sampler(path: Path, node: NodeProto) -> NodeProto:
    attributes = _attributes(path, node)
    if len(node.input) != 2 or len(node.output) != 1:
        raise ToolError(
            f"{path}: node '{node.name}' has {len(node.input)} inputs and {len(node.output)}"
            f" outputs, wanted 2 and 1 of {node.op_type}"
        )
    mode = attributes.get("interpolation_mode", attributes.get("mode", 0))
    align = attributes.get("align_corners", 0)
    if align not in (0, 1):
        raise ToolError(f"{path}: node '{node.name}' has align_corners {align!r}, wanted 0 or 1")
    padding = attributes.get("padding_mode", 0)
    names = SAMPLER_MODES if node.op_type == LEGACY_SAMPLER else {**SAMPLER_MODES, 2: "cubic"}
    return helper.make_node(
        "GridSample",
        list(node.input),
        list(node.output),
        name=node.name,
        align_corners=align,
        mode=_choice(path, node, "mode", mode, names),
        padding_mode=_choice(path, node, "padding_mode", padding, SAMPLER_PADDINGS),
    )


def _axes_as_input(path: Path, node: NodeProto, graph: GraphProto, serial: int) -> None:
    axes = _attributes(path, node).get("axes")
    if axes is None:
        return
    name = f"newscaster.axes.{serial}"
    kept = [item for item in node.attribute if item.name != "axes"]
    del node.attribute[:]
    node.attribute.extend(kept)
    graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(axes, dtype=np.int64), name))
    node.input.append(name)


def _raise_node(path: Path, node: NodeProto, graph: GraphProto, serial: int) -> None:
    """The differences between opsets 13 and 20 that change a node's form."""
    if node.op_type in REDUCTIONS and len(node.input) == 1:
        _axes_as_input(path, node, graph, serial)
    elif node.op_type == "Split" and len(node.input) == 1:
        if not any(item.name == "num_outputs" for item in node.attribute):
            node.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
    elif node.op_type == "RoiAlign":
        raise ToolError(f"{path}: node '{node.name}' is a RoiAlign, wanted none in a Ditto graph")


def normalise_samplers(path: Path, model: ModelProto) -> bool:
    """GridSample3D plug-in nodes and older GridSample nodes -> GridSample of opset 20.

    Returns whether anything changed. Graphs without a sampler keep their opset.
    """
    opset = opset_of(path, model)
    every = list(all_graphs(model.graph, path))
    samplers = (LEGACY_SAMPLER, "GridSample")
    found = {node.op_type for graph in every for node in graph.node if node.op_type in samplers}
    if not found or (found == {"GridSample"} and opset >= OPSET):
        return False
    serial = 0
    for graph in every:
        for node in graph.node:
            if node.op_type in samplers:
                node.CopyFrom(_normal_sampler(path, node))
            elif opset < OPSET:
                _raise_node(path, node, graph, serial)
                serial += 1
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", max(opset, OPSET)))
    model.ir_version = max(model.ir_version, 9)
    return True


def _rename(model: ModelProto, path: Path, renames: Mapping[str, str]) -> None:
    """Renames tensors everywhere; a tensor that already has a new name gives way."""
    used: set[str] = set()
    every = list(all_graphs(model.graph, path))
    for graph in every:
        used.update(name for node in graph.node for name in (*node.input, *node.output))
    mapping = dict(renames)
    for new in renames.values():
        if new in used and new not in renames:
            mapping[new] = f"newscaster.{new}"

    def fix(name: str) -> str:
        return mapping.get(name, name)

    for graph in every:
        for node in graph.node:
            node.input[:] = [fix(name) for name in node.input]
            node.output[:] = [fix(name) for name in node.output]
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = fix(value.name)


def rename_tensors(path: Path, model: ModelProto, rule: GraphRule) -> bool:
    """Inputs and outputs get the engine's names. Returns whether anything changed."""
    renames = {tensor.released: tensor.name for tensor in rule.inputs}
    for value, tensor in zip(model.graph.output, rule.outputs, strict=True):
        renames[value.name] = tensor.name
    renames = {old: new for old, new in renames.items() if old != new}
    if renames:
        _rename(model, path, renames)
    return bool(renames)


def add_leading_axis(path: Path, model: ModelProto, rule: GraphRule) -> bool:
    """Outputs that lack axis 0 in the released form get it. Returns whether anything changed."""
    changed = False
    for value, tensor in zip(model.graph.output, rule.outputs, strict=True):
        if not tensor.leading_one_optional or len(shape_of(value)) != len(tensor.shape) - 1:
            continue
        inner, axes = f"newscaster.flat.{value.name}", f"newscaster.axes.{value.name}"
        _rename(model, path, {value.name: inner})
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.zeros(1, dtype=np.int64), axes)
        )
        model.graph.node.append(
            helper.make_node("Unsqueeze", [inner, axes], [tensor.name], name="newscaster.axis")
        )
        value.CopyFrom(
            helper.make_tensor_value_info(tensor.name, DTYPES[tensor.dtype], list(tensor.shape))
        )
        changed = True
    return changed


def add_motion_vector(path: Path, model: ModelProto, dims: int, points: int) -> None:
    """Joins the motion extractor's outputs to what the engine reads.

    `motion` [1, dims] = scale - 1, pitch, yaw, roll, t, exp; `kp_canonical` [1, points, 3] = kp.
    """
    parts = ("scale", "pitch", "yaw", "roll", "t", "exp")
    prefix = "newscaster.motion"
    graph = model.graph
    one, shape = np.ones(1, dtype=np.float32), np.array([1, points, 3], dtype=np.int64)
    graph.initializer.append(onnx.numpy_helper.from_array(one, f"{prefix}.one"))
    graph.initializer.append(onnx.numpy_helper.from_array(shape, f"{prefix}.shape"))
    joined = [f"{prefix}.scale", *parts[1:]]
    graph.node.extend(
        [
            helper.make_node("Sub", ["scale", f"{prefix}.one"], [f"{prefix}.scale"]),
            helper.make_node("Concat", joined, ["motion"], axis=1),
            helper.make_node("Reshape", ["kp", f"{prefix}.shape"], ["kp_canonical"]),
        ]
    )
    graph.output.extend(
        [
            helper.make_tensor_value_info("motion", TensorProto.FLOAT, [1, dims]),
            helper.make_tensor_value_info("kp_canonical", TensorProto.FLOAT, [1, points, 3]),
        ]
    )
    check_model(path, model)


def without_provenance(model: ModelProto) -> ModelProto:
    """Drops notes that exporters leave (stack traces, module paths, file names); in place."""
    model.producer_name, model.producer_version, model.doc_string = "newscaster-tools", "", ""
    del model.metadata_props[:]
    for graph in all_graphs(model.graph, Path("graph")):
        graph.doc_string = ""
        del graph.metadata_props[:]
        del graph.value_info[:]
        items = (*graph.node, *graph.input, *graph.output, *graph.initializer)
        for item in items:
            item.doc_string = ""
            del item.metadata_props[:]
    return model


def normalised(path: Path, rule: GraphRule) -> tuple[ModelProto, bool]:
    """The released graph in the engine's form, and whether it differs from the file."""
    model = read(path, rule.what)
    check_signature(path, model, rule)
    changed = normalise_samplers(path, model)
    changed = add_leading_axis(path, model, rule) or changed
    changed = rename_tensors(path, model, rule) or changed
    check_model(path, model)
    return model, changed
