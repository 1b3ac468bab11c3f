"""Measured errors, kept for docs/parity.md."""

from __future__ import annotations

import json
import os
from pathlib import Path


def record(stage: str, error: float, scale: float) -> None:
    """Appends a line to the file that NEWSCASTER_PARITY_LOG names, if it names one."""
    path = os.environ.get("NEWSCASTER_PARITY_LOG")
    if path:
        with Path(path).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"stage": stage, "max_abs": error, "scale": scale}) + "\n")
