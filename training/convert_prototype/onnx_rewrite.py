"""Rewrites that only the prototype's graphs need; the others are in studio/graph_files.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper
from studio.graph_files import make_batch_dynamic


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


def _node(graph: onnx.GraphProto, name: str) -> onnx.NodeProto:
    found: list[onnx.NodeProto] = [node for node in graph.node if node.name == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} nodes named {name}, wanted 1")
    return found[0]


def _replace_reshape_target(graph: onnx.GraphProto, name: str, target: list[int]) -> None:
    constant = f"{name}_target"
    graph.initializer.append(numpy_helper.from_array(np.array(target, np.int64), constant))
    _node(graph, name).input[1] = constant
