"""skeleton-ditto: the graphs of a seeded pack without their weights, and a recipe to fill them in.

Seeded weights depend on seed, names and shapes alone (`ditto.seeded`), so a test can work them out
instead of storing 50 MB. Large tensors of a skeleton are ONNX external data in `<role>.weights`;
`weights.json` says what those files hold:

    element i of a tensor = f32(scale[row(i)] * uniform(seed, source)[offset + place(i)])

with row(i) the index along the first axis (one scale alone serves all rows) and place(i) = i, or
the place in the transposed matrix. Every tensor is checked against this formula before its values
are dropped; one that does not follow it stays in the graph.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper
from torch import nn

from ditto.config import DittoConfig
from ditto.seeded import uniform
from newscaster_tools import pack_folder
from newscaster_tools.ditto_cfg import DittoSettings
from newscaster_tools.export_ditto import export_seeded, seeded_network
from newscaster_tools.files import make_folder, replacing

Floats = npt.NDArray[np.float32]

KEPT_ELEMENTS = 512  # tensors up to this size stay in the graph
TOLERANCE = 1e-6  # of the largest value; the sum of a few roundings
PROBE = 64  # elements compared before a whole tensor is


@dataclasses.dataclass(frozen=True)
class Source:
    """Part of a seeded tensor that a graph may hold in some form."""

    name: str
    offset: int
    values: Floats


def _sources(network: nn.Module, seed: int) -> Iterator[Source]:
    for name, parameter in network.named_parameters():
        if parameter.numel() <= KEPT_ELEMENTS:
            continue
        seeded_name = name.removesuffix("_orig")
        values = uniform(seed, seeded_name, parameter.shape)
        yield Source(seeded_name, 0, values)
        if name.endswith("in_proj_weight"):  # exported as queries, keys and values
            for index, part in enumerate(np.split(values, 3)):
                yield Source(seeded_name, index * part.size, np.ascontiguousarray(part))


def _scales(values: Floats, basis: Floats) -> Floats | None:
    """Factor of each row that makes `basis` equal to `values`, one factor if all agree."""
    rows, basis_rows = values.reshape(len(values), -1), basis.reshape(len(basis), -1)
    probe = slice(0, PROBE)
    limit = TOLERANCE * float(np.abs(values).max())
    products = (rows * basis_rows).sum(axis=1, dtype=np.float64)
    factors = (products / np.square(basis_rows, dtype=np.float64).sum(axis=1)).astype(np.float32)
    single = factors.mean(dtype=np.float64).astype(np.float32)
    for scales in (single[None], factors):
        scaled = basis_rows * scales[:, None]
        if np.abs(scaled[:, probe] - rows[:, probe]).max() > limit:
            continue
        if np.abs(scaled - rows).max() <= limit:
            return scales
    return None


def _recipe(values: Floats, sources: list[Source]) -> dict[str, Any] | None:
    for source in sources:
        if source.values.size != values.size:
            continue
        transposed = False
        scales = None
        if source.values.shape == values.shape:
            scales = _scales(values, source.values)
        if scales is None and source.values.ndim == 2 and source.values.T.shape == values.shape:
            # Rows of the source are columns here: only one factor for all makes sense.
            scales, transposed = _scales(values, np.ascontiguousarray(source.values.T)), True
            if scales is not None and scales.size > 1:
                continue
        if scales is not None:
            return {
                "source": source.name,
                "offset": source.offset,
                "shape": list(values.shape),
                "transposed": transposed,
                "scale": [float(scale) for scale in scales],
            }
    return None


def _make_external(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)


def strip(path: Path, network: nn.Module, seed: int) -> list[dict[str, Any]]:
    """Empties the graph's large tensors; returns how to fill them, in the order of the file."""
    model = onnx.load(path)
    sources = list(_sources(network, seed))
    recipes: list[dict[str, Any]] = []
    offset = 0
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or math.prod(tensor.dims) <= KEPT_ELEMENTS:
            continue
        values = numpy_helper.to_array(tensor)
        recipe = _recipe(values, sources)
        if recipe is None:
            continue
        recipes.append(recipe)
        _make_external(tensor, f"{path.stem}.weights", offset, values.nbytes)
        offset += values.nbytes
    with replacing(path) as partial:
        partial.write_bytes(model.SerializeToString(deterministic=True))
    return recipes


def write_skeletons(config: DittoConfig, seed: int, folder: Path) -> dict[str, Path]:
    """A pack folder of skeletons with weights.json."""
    make_folder(folder)
    files = export_seeded(config, seed, (*pack_folder.PACK_ROLES, "dense_motion_core"), folder)
    pack_folder.add_motion_vector_to(files["motion_extractor"], config)
    recipes = {
        role: strip(path, seeded_network(role, config, seed), seed) for role, path in files.items()
    }
    name = f"ditto-seeded-{seed}"
    files |= pack_folder.finish_pack(folder, files, name, config, DittoSettings())
    files["weights"] = folder / "weights.json"
    with replacing(files["weights"]) as partial:
        lines = ",\n".join(
            f'  "{role}": [\n'
            + ",\n".join(f"   {json.dumps(recipe)}" for recipe in role_recipes)
            + "\n  ]"
            for role, role_recipes in recipes.items()
        )
        partial.write_text(
            f'{{\n "seed": {seed},\n "graphs": {{\n{lines}\n }}\n}}\n', encoding="utf-8"
        )
    return files
