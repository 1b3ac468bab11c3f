"""File helpers of the tools."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from newscaster_tools.errors import ToolError

# Above what any Ditto file has; a sparse or runaway file is refused before it is read.
MAX_FILE_BYTES = 4 << 30


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_file(path: Path, wanted: str) -> Path:
    """`path`, if it is a file of sane size."""
    if not path.exists():
        raise ToolError(f"{path}: no such file, wanted {wanted}")
    if not path.is_file():
        raise ToolError(f"{path}: not a regular file, wanted {wanted}")
    size = path.stat().st_size
    if size == 0:
        raise ToolError(f"{path}: the file is empty, wanted {wanted}")
    if size > MAX_FILE_BYTES:
        raise ToolError(f"{path}: has {size} bytes, wanted at most {MAX_FILE_BYTES}: {wanted}")
    return path


def make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"{path}: cannot make the folder: {error.strerror}") from error
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a sibling path to write; it takes the place of `path` only on success."""
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise ToolError(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
