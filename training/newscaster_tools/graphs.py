"""ONNX graphs of a release: checked before use, then brought into the engine's form.

Everything is read in plain Python on the protobuf message, with bounds, before any native code
sees it: a damaged or hostile file ends in a ToolError.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

from newscaster_tools.errors import ToolError
from newscaster_tools.files import require_file

OPSET = 20
# Opsets between these read alike, but for the operators that `raise_opset` rewrites.
LOWEST_OPSET = 13
HIGHEST_OPSET = 21
LEGACY_SAMPLER = "GridSample3D"
STANDARD_DOMAINS = ("", "ai.onnx")
MAX_NESTING = 8
MAX_NODES = 100_000
DTYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64}


@dataclass(frozen=True)
class TensorRule:
    """What one input or output of a released graph must be, and the engine's name for it."""

    released: str
    name: str
    shape: tuple[int, ...]
    dtype: str = "f32"
    leading_one_optional: bool = False  # the released form may lack axis 0


@dataclass(frozen=True)
class GraphRule:
    """Signature of one released graph. Inputs are matched by name, outputs by order."""

    what: str
    inputs: tuple[TensorRule, ...]
    outputs: tuple[TensorRule, ...]


def all_graphs(graph: GraphProto, path: Path, depth: int = 0) -> Iterator[GraphProto]:
    if depth > MAX_NESTING:
        raise ToolError(f"{path}: graphs are nested deeper than {MAX_NESTING}, wanted a flat graph")
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                yield from all_graphs(inner, path, depth + 1)


def _constant_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def _check_tensor(path: Path, tensor: TensorProto) -> None:
    name = tensor.name or "a constant"
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise ToolError(f"{path}: {name} keeps its data in another file, wanted one file")
    try:
        itemsize = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, ValueError, TypeError) as error:
        raise ToolError(
            f"{path}: {name} has element type {tensor.data_type}, wanted a known one"
        ) from error
    if any(dim < 0 for dim in tensor.dims):
        raise ToolError(f"{path}: {name} has shape {list(tensor.dims)}, wanted sizes >= 0")
    if not tensor.HasField("raw_data"):
        return  # typed fields: the checker compares their length
    wanted = math.prod(tensor.dims) * itemsize
    if len(tensor.raw_data) != wanted:
        raise ToolError(
            f"{path}: {name} of shape {list(tensor.dims)} has {len(tensor.raw_data)} bytes,"
            f" wanted {wanted}"
        )
    if tensor.data_type == TensorProto.FLOAT:
        values = np.frombuffer(tensor.raw_data, dtype="<f4")
        if not np.isfinite(values).all():
            raise ToolError(f"{path}: {name} has values that are not finite, wanted numbers")


def opset_of(path: Path, model: ModelProto) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS]
    if len(versions) != 1 or not LOWEST_OPSET <= versions[0] <= HIGHEST_OPSET:
        raise ToolError(
            f"{path}: found ONNX opset {versions}, wanted one of {LOWEST_OPSET}..{HIGHEST_OPSET}"
        )
    return int(versions[0])


def _texts(graph: GraphProto) -> Iterator[object]:
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        yield value.name
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def _check_texts(path: Path, model: ModelProto) -> None:
    """Protobuf does not check text before it is read, and then answers in several ways."""
    try:
        texts: list[object] = [entry.domain for entry in model.opset_import]
        for graph in all_graphs(model.graph, path):
            texts.extend(_texts(graph))
        sound = all(isinstance(text, str) for text in texts)
    except UnicodeError:
        sound = False
    if not sound:
        raise ToolError(f"{path}: damaged: has a name that is no UTF-8 text, wanted an ONNX graph")


def _check_operators(path: Path, model: ModelProto) -> None:
    count = 0
    for graph in all_graphs(model.graph, path):
        count += len(graph.node)
        for node in graph.node:
            known = node.domain in STANDARD_DOMAINS and onnx.defs.has(node.op_type)
            if not known and node.op_type != LEGACY_SAMPLER:
                domain = f"{node.domain}." if node.domain else ""
                raise ToolError(
                    f"{path}: node '{node.name}' is a '{domain}{node.op_type}',"
                    f" wanted standard ONNX operators or {LEGACY_SAMPLER}"
                )
    if count > MAX_NODES:
        raise ToolError(f"{path}: has {count} nodes, wanted at most {MAX_NODES}")


def read(path: Path, what: str) -> ModelProto:
    """A model whose structure is sound: one file, known operators, tensors as long as they say."""
    require_file(path, f"the ONNX graph of {what}")
    try:
        model = onnx.load_model(path, format="protobuf", load_external_data=False)
    except (DecodeError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise ToolError(
            f"{path}: truncated, or not an ONNX file, wanted the graph of {what}"
        ) from error
    if not model.graph.node or not model.graph.output:
        raise ToolError(f"{path}: holds no graph, wanted the ONNX graph of {what}")
    if model.functions:
        raise ToolError(f"{path}: has model-local functions, wanted plain nodes")
    _check_texts(path, model)
    opset_of(path, model)
    _check_operators(path, model)
    for graph in all_graphs(model.graph, path):
        if graph.sparse_initializer:
            raise ToolError(f"{path}: has sparse tensors, wanted dense ones")
        for tensor in _constant_tensors(graph):
            _check_tensor(path, tensor)
    return model


def shape_of(value: ValueInfoProto) -> list[int]:
    """Dimensions; -1 where the file leaves them open."""
    dims = value.type.tensor_type.shape.dim
    return [int(dim.dim_value) if dim.HasField("dim_value") else -1 for dim in dims]


def _check_value(path: Path, value: ValueInfoProto, rule: TensorRule) -> None:
    tensor = value.type.tensor_type
    shape = shape_of(value)
    if tensor.elem_type != DTYPES[rule.dtype]:
        raise ToolError(
            f"{path}: tensor '{value.name}' has element type {tensor.elem_type},"
            f" wanted {rule.dtype}"
        )
    if not tensor.HasField("shape"):
        return
    wanted = list(rule.shape)
    fits = [wanted, wanted[1:]] if rule.leading_one_optional else [wanted]
    for candidate in fits:
        if len(shape) == len(candidate) and all(
            found in (-1, want) for found, want in zip(shape, candidate, strict=True)
        ):
            return
    raise ToolError(f"{path}: tensor '{value.name}' has shape {shape}, wanted {wanted}")


def check_signature(path: Path, model: ModelProto, rule: GraphRule) -> None:
    """Inputs and outputs are those of the released network."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value for value in model.graph.input if value.name not in constants}
    wanted = [tensor.released for tensor in rule.inputs]
    if set(inputs) != set(wanted):
        raise ToolError(
            f"{path}: has inputs {sorted(inputs)}, wanted {sorted(wanted)} of {rule.what}"
        )
    if len(model.graph.output) != len(rule.outputs):
        raise ToolError(
            f"{path}: has {len(model.graph.output)} outputs, wanted {len(rule.outputs)}:"
            f" {', '.join(tensor.name for tensor in rule.outputs)} of {rule.what}"
        )
    for tensor in rule.inputs:
        _check_value(path, inputs[tensor.released], tensor)
    for value, tensor in zip(model.graph.output, rule.outputs, strict=True):
        _check_value(path, value, tensor)


def check_model(path: Path, model: ModelProto) -> None:
    """ONNX's own checker, after ours."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError, EncodeError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise ToolError(f"{path}: no valid ONNX graph: {reason}") from error


def write(model: ModelProto, path: Path) -> None:
    try:
        path.write_bytes(model.SerializeToString(deterministic=True))
    except (EncodeError, ValueError) as error:
        raise ToolError(f"{path}: cannot write: {error}") from error
