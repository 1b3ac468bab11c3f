"""Reads Ditto's cfg pickles without running them.

Only NumPy arrays, NumPy scalars and plain containers may occur. NumPy's own constructors are never
called: the pickle's references to them lead to small stand-ins that check every field, so a damaged
or hostile file ends in a ToolError and cannot run code or ask for unbounded memory.
"""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newscaster_tools.errors import ToolError
from newscaster_tools.files import require_file

MAX_PICKLE_BYTES = 64 << 20
MAX_DEPTH = 32
MAX_ITEMS = 1_000_000
# Type codes of the arrays a cfg may hold: bool, signed, unsigned, float.
CODES = frozenset(
    f"{kind}{size}"
    for kind, sizes in {"i": "1248", "u": "1248", "f": "248"}.items()
    for size in sizes
) | {"b1"}

Plain = Any  # None, bool, int, float, str, bytes, list, tuple, dict, set, ndarray


class _Dtype:
    """Stand-in for numpy.dtype."""

    def __init__(self, code: object = None, *_: object) -> None:
        text = code.lstrip("<>|=") if isinstance(code, str) else code
        if text not in CODES:
            raise pickle.UnpicklingError(f"array elements of type {code!r}")
        self.code = str(text)
        self.order = "<"

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"byte order {order!r}")
        self.order = "<" if order in ("|", "=") else order

    def decode(self, raw: object, shape: object) -> npt.NDArray[Any]:
        dtype = np.dtype(self.order + self.code)
        sizes = shape if isinstance(shape, tuple) else (None,)
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise pickle.UnpicklingError(f"array shape {shape!r}")
        if isinstance(raw, str):  # protocol 2 keeps bytes as latin-1 text
            raw = raw.encode("latin-1")
        wanted = math.prod(sizes) * dtype.itemsize
        if not isinstance(raw, (bytes, bytearray)) or len(raw) != wanted:
            raise pickle.UnpicklingError(f"array data that is not {wanted} bytes")
        array: npt.NDArray[Any] = np.frombuffer(bytes(raw), dtype=dtype).reshape(sizes)
        return array.astype(dtype.newbyteorder("="))


class _Array:
    """Stand-in for an array under construction."""

    def __init__(self, *_: object) -> None:
        self.value: npt.NDArray[Any] | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], _Dtype):
            raise pickle.UnpicklingError("an array without its data")
        _, shape, dtype, column_major, raw = state
        if column_major and isinstance(shape, tuple):
            self.value = dtype.decode(raw, shape[::-1]).T
        else:
            self.value = dtype.decode(raw, shape)


def _scalar(dtype: object, raw: object) -> object:
    if not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("a number without its type")
    return dtype.decode(raw, ()).item()


def _encode(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"text in encoding {encoding!r}")
    return text.encode("latin-1")


class _Ndarray:
    """Stands for the class numpy.ndarray, which only ever appears as an argument."""


def _frombuffer(raw: object, dtype: object, shape: object, order: object) -> _Array:
    """Form of protocol 5."""
    if not isinstance(dtype, _Dtype) or order not in ("C", "F"):
        raise pickle.UnpicklingError("an array without its type")
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", raw))
    return array


ALLOWED: dict[tuple[str, str], object] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Ndarray,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):
    ALLOWED[(f"{_core}.multiarray", "_reconstruct")] = _Array
    ALLOWED[(f"{_core}.multiarray", "scalar")] = _scalar
    ALLOWED[(f"{_core}.numeric", "_frombuffer")] = _frombuffer


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
        found = ALLOWED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"an object of {module}.{name}")
        return found

    def persistent_load(self, pid: object) -> Any:  # noqa: ANN401
        raise pickle.UnpicklingError("a reference to another file")


class _Plainer:
    """Turns stand-ins into arrays and refuses everything that is not plain."""

    def __init__(self) -> None:
        self.items = 0

    def __call__(self, value: object, depth: int = 0) -> Plain:
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise pickle.UnpicklingError("containers nested too deep or too many")
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return value
        if isinstance(value, _Array) and value.value is not None:
            return value.value
        if type(value) in (list, tuple, set, frozenset):
            items = [self(item, depth + 1) for item in value]  # type: ignore[attr-defined]
            return items if isinstance(value, list) else type(value)(items)  # type: ignore[call-arg]
        if isinstance(value, dict):
            return {self(key, depth + 1): self(item, depth + 1) for key, item in value.items()}
        raise pickle.UnpicklingError(f"an object of {type(value).__name__}")


def load_plain(path: Path) -> Plain:
    """The pickle's content, made of arrays and plain containers only."""
    wanted = "a Ditto cfg pickle"
    require_file(path, wanted)
    size = path.stat().st_size
    if size > MAX_PICKLE_BYTES:
        raise ToolError(f"{path}: has {size} bytes, wanted at most {MAX_PICKLE_BYTES}: {wanted}")
    try:
        content = _Unpickler(io.BytesIO(path.read_bytes())).load()
        return _Plainer()(content)
    # A damaged stream can make the unpickler raise anything, as its documentation says.
    except Exception as error:
        reason = str(error).split("\n")[0][:160] or type(error).__name__
        raise ToolError(
            f"{path}: truncated, or not plain data (found {reason}),"
            f" wanted NumPy arrays and plain containers: {wanted}"
        ) from error
