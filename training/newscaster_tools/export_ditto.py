"""export-ditto: ONNX graphs of Ditto's networks, from released or seeded weights."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from ditto.config import DittoConfig
from ditto.folding import folded
from ditto.networks import build_network
from ditto.seeded import seed_parameters
from ditto.signatures import SIGNATURES, Signature
from ditto.warping import DenseMotionCore
from newscaster_tools import graph_rewrites, graphs
from newscaster_tools.checkpoints import PTH_FILES, load_network
from newscaster_tools.files import make_folder, replacing

OPSET = 20  # the first with a 5-D GridSample
MAX_BATCH = 256


def exportable(role: str, network: nn.Module) -> nn.Module:
    """The form that is exported: constants folded, the role's own entry point."""
    plain = folded(network)
    if role == "dense_motion_core":
        return DenseMotionCore(plain.dense_motion_network)  # type: ignore[arg-type]
    return plain


def example_inputs(signature: Signature) -> tuple[Tensor, ...]:
    """Inputs to trace with; a batch of two where the batch is free."""
    batch = 2 if signature.batched else 1
    inputs = []
    for name, shape in signature.inputs.items():
        if name == "time_cond":
            inputs.append(torch.zeros(shape, dtype=torch.int64))
        else:
            inputs.append(torch.zeros(batch, *shape[1:]))
    return tuple(inputs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter reports its passes on stdout and through logging; a tool's stdout is data."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def export_network(role: str, network: nn.Module, config: DittoConfig, path: Path) -> None:
    """Writes one self-contained ONNX file."""
    signature = SIGNATURES[role](config)
    dynamic: tuple[dict[int, object], ...] | None = None
    if signature.batched:
        batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
        dynamic = tuple({0: batch} for _ in signature.inputs)
    with _quiet(), replacing(path) as partial, torch.no_grad():
        torch.onnx.export(
            exportable(role, network),
            example_inputs(signature),
            str(partial),
            input_names=list(signature.inputs),
            output_names=list(signature.outputs),
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            dynamic_shapes=dynamic,
            verbose=False,
        )
        graphs.write(graph_rewrites.without_provenance(onnx.load(partial)), partial)


def seeded_network(role: str, config: DittoConfig, seed: int) -> nn.Module:
    return seed_parameters(build_network(role, config), seed)


def export_seeded(
    config: DittoConfig, seed: int, roles: Iterable[str], folder: Path
) -> dict[str, Path]:
    """Graphs with deterministic random weights."""
    make_folder(folder)
    files = {}
    for role in roles:
        files[role] = folder / f"{role}.onnx"
        export_network(role, seeded_network(role, config, seed), config, files[role])
    return files


def export_released(
    config: DittoConfig, models: Path, roles: Iterable[str], folder: Path
) -> dict[str, Path]:
    """Graphs of the released `.pth` files. HuBERT was released as a graph only: not among them."""
    make_folder(folder)
    files = {}
    for role in roles:
        source = models / PTH_FILES["warp" if role == "dense_motion_core" else role]
        network = load_network(source, "warp" if role == "dense_motion_core" else role, config)
        files[role] = folder / f"{role}.onnx"
        export_network(role, network, config, files[role])
    return files
