"""Rewrites of exported ONNX graphs: half-precision weights and a dynamic batch axis."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Smaller tensors (biases, norms) stay f32: they save nothing and cost accuracy.
MIN_HALF_ELEMENTS = 1024


def load(path: Path) -> onnx.ModelProto:
    """Loads and checks a graph, without the exporter's notes (they carry paths of its machine)."""
    model = onnx.load(path)
    onnx.checker.check_model(model)
    model.doc_string = ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    return model


def store_weights_as_half(model: onnx.ModelProto, keep_f32: Collection[str]) -> int:
    """Replaces large f32 initialisers by fp16 ones followed by a Cast; returns how many.

    Tensors inside Constant nodes (the DFT and mel filters of the audio encoder, coordinate grids,
    spline tables) are left alone, and so are the names in `keep_f32`.
    """
    graph = model.graph
    names = {tensor.name for tensor in graph.initializer}
    unknown = set(keep_f32) - names
    if unknown:
        raise ValueError(f"keep_f32 names no initialiser: {sorted(unknown)}")
    kept: list[TensorProto] = []
    casts: list[onnx.NodeProto] = []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        small = values.ndim < 2 or values.size < MIN_HALF_ELEMENTS
        if values.dtype != np.float32 or small or tensor.name in keep_f32:
            kept.append(tensor)
            continue
        half_name = f"{tensor.name}_half"
        kept.append(numpy_helper.from_array(values.astype(np.float16), half_name))
        casts.append(helper.make_node("Cast", [half_name], [tensor.name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.node[:]
    graph.node.extend(nodes)
    return len(casts)


def make_batch_dynamic(model: onnx.ModelProto, names: Sequence[str]) -> None:
    """Names axis 0 of the listed inputs and outputs "batch" instead of the constant 1."""
    wanted = set(names)
    for value in [*model.graph.input, *model.graph.output]:
        if value.name in wanted:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
            wanted.discard(value.name)
    if wanted:
        raise ValueError(f"not an input or output: {sorted(wanted)}")
    # Stale inferred shapes would contradict the new axis.
    del model.graph.value_info[:]


def free_batch_of_warp(model: onnx.ModelProto) -> None:
    """Removes the batch-1 constants of the prototype's warp graph.

    The export burnt the batch into three places: two Reshape targets, which become -1 with every
    other extent spelt out, and the Expand of the coordinate grid, which now reads the batch of
    kp_driving.
    """
    graph = model.graph
    _replace_reshape_target(graph, "/w/Reshape", [-1, 44, 64, 64])
    _replace_reshape_target(graph, "/w/Reshape_1", [-1, 2, 64, 64])
    expand = _node(graph, "/w/Expand")
    constants = {"batch_axis_start": [0], "batch_axis_end": [1], "grid_extents": [64 * 64, 2]}
    for name, values in constants.items():
        graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    at = list(graph.node).index(expand)
    nodes = [
        helper.make_node("Shape", ["kp_driving"], ["kp_driving_shape"]),
        helper.make_node(
            "Slice", ["kp_driving_shape", "batch_axis_start", "batch_axis_end"], ["batch_extent"]
        ),
        helper.make_node("Concat", ["batch_extent", "grid_extents"], ["grid_shape"], axis=0),
    ]
    for offset, node in enumerate(nodes):
        graph.node.insert(at + offset, node)
    _node(graph, "/w/Expand").input[1] = "grid_shape"
    remove_dead_nodes(graph)
    make_batch_dynamic(model, [v.name for v in [*graph.input, *graph.output]])


def mirror_dims(model: onnx.ModelProto, names: Sequence[str], dims: Sequence[int]) -> None:
    """Changes the sign of `dims` of the last axis at the listed inputs and outputs."""
    graph = model.graph
    values = {v.name: v for v in [*graph.input, *graph.output]}
    inputs = {v.name for v in graph.input}
    for name in names:
        sign = np.ones(values[name].type.tensor_type.shape.dim[-1].dim_value, np.float32)
        sign[list(dims)] = -1
        graph.initializer.append(numpy_helper.from_array(sign, f"{name}_sign"))
        inner = f"{name}_mirrored"
        for node in graph.node:
            names_of = node.input if name in inputs else node.output
            for i, tensor in enumerate(names_of):
                if tensor == name:
                    names_of[i] = inner
            if name not in inputs:
                for i, tensor in enumerate(node.input):
                    if tensor == name:
                        node.input[i] = inner
        if name in inputs:
            mul = helper.make_node("Mul", [name, f"{name}_sign"], [inner], name=f"/{inner}")
            graph.node.insert(0, mul)
        else:
            mul = helper.make_node("Mul", [inner, f"{name}_sign"], [name], name=f"/{inner}")
            graph.node.append(mul)


def remove_dead_nodes(graph: onnx.GraphProto) -> None:
    """Drops nodes and initialisers whose results nobody reads."""
    while True:
        read = {name for node in graph.node for name in node.input}
        read |= {value.name for value in graph.output}
        live = [node for node in graph.node if any(name in read for name in node.output)]
        if len(live) == len(graph.node):
            break
        del graph.node[:]
        graph.node.extend(live)
    used = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(used)


def signature(model: onnx.ModelProto) -> tuple[dict[str, str], dict[str, str]]:
    """Tensor name -> element type name of the inputs and of the outputs."""
    words: dict[int, str] = {TensorProto.FLOAT: "f32", TensorProto.INT64: "i64"}

    def types(values: Sequence[onnx.ValueInfoProto]) -> dict[str, str]:
        return {v.name: words[v.type.tensor_type.elem_type] for v in values}

    return types(model.graph.input), types(model.graph.output)


def _node(graph: onnx.GraphProto, name: str) -> onnx.NodeProto:
    found: list[onnx.NodeProto] = [node for node in graph.node if node.name == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} nodes named {name}, wanted 1")
    return found[0]


def _replace_reshape_target(graph: onnx.GraphProto, name: str, target: list[int]) -> None:
    constant = f"{name}_target"
    graph.initializer.append(numpy_helper.from_array(np.array(target, np.int64), constant))
    _node(graph, name).input[1] = constant
