"""ONNX files: half-precision weights, free batch axes, signatures."""

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
        if hasattr(node, "metadata_props"):  # onnx 1.16 and later
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


def signature(model: onnx.ModelProto) -> tuple[dict[str, str], dict[str, str]]:
    """Tensor name -> element type name of the inputs and of the outputs."""
    words: dict[int, str] = {TensorProto.FLOAT: "f32", TensorProto.INT64: "i64"}

    def types(values: Sequence[onnx.ValueInfoProto]) -> dict[str, str]:
        return {v.name: words[v.type.tensor_type.elem_type] for v in values}

    return types(model.graph.input), types(model.graph.output)
