"""A stripped graph and its recipes give the weights back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ditto.config import DittoConfig
from ditto.seeded import uniform
from newscaster_tools.export_ditto import export_network, seeded_network
from newscaster_tools.skeleton import strip

SEED = 42
CONFIG = DittoConfig(width=0.125, image_size=128)


@pytest.mark.parametrize("role", ["stitch", "motion_generator", "warp"])
def test_recipes_give_the_weights_back(role: str, tmp_path: Path) -> None:
    path = tmp_path / f"{role}.onnx"
    network = seeded_network(role, CONFIG, SEED)
    export_network(role, network, CONFIG, path)
    wanted = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    recipes = strip(path, network, SEED)
    stripped = [
        tensor
        for tensor in onnx.load(path, load_external_data=False).graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
    ]
    assert len(stripped) == len(recipes) > 0
    assert path.stat().st_size < 0.3 * sum(value.nbytes for value in wanted.values())
    for tensor, recipe in zip(stripped, recipes, strict=True):
        shape = recipe["shape"]
        count = int(np.prod(shape))
        source = uniform(SEED, recipe["source"], (recipe["offset"] + count,))[recipe["offset"] :]
        values = source.reshape(shape[::-1]).T if recipe["transposed"] else source.reshape(shape)
        scale = np.array(recipe["scale"], np.float32).reshape(-1, *[1] * (len(shape) - 1))
        np.testing.assert_allclose(
            values * scale, wanted[tensor.name], atol=1e-6 * np.abs(wanted[tensor.name]).max()
        )
