"""Shared fixtures of the Ditto tests."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

UPSTREAM_VARIABLE = "NEWSCASTER_DITTO_UPSTREAM"

torch.set_num_threads(int(os.environ.get("NEWSCASTER_TEST_THREADS", "1")))


@pytest.fixture(scope="session")
def upstream() -> ModuleType:
    """Upstream's own network modules, from a checkout outside this project."""
    folder = os.environ.get(UPSTREAM_VARIABLE)
    if not folder:
        pytest.skip(f"{UPSTREAM_VARIABLE} names no checkout of upstream")
    pytest.importorskip("einops")
    sys.path.insert(0, str(Path(folder)))
    try:
        modules = importlib.import_module("core.models.modules")  # upstream's package
    finally:
        sys.path.pop(0)
    return modules
