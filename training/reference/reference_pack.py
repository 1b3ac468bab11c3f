"""Reads a model pack and an avatar's tensors the plain way: JSON, safetensors, onnxruntime."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

_DTYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1"}
_NAMES = {np.dtype(text): name for name, text in _DTYPES.items()}


def read_safetensors(file: Path) -> dict[str, npt.NDArray[Any]]:
    """All tensors of a file, in their stored type."""
    data = file.read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_bytes])
    body = memoryview(data)[8 + header_bytes :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(body[begin:end], _DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write_safetensors(file: Path, tensors: dict[str, npt.NDArray[Any]]) -> None:
    """Little-endian u64 header length, JSON header padded to 8 bytes, tensors in name order."""
    header: dict[str, Any] = {}
    offset = 0
    arrays = [(name, np.ascontiguousarray(tensors[name])) for name in sorted(tensors)]
    for name, array in arrays:
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little"))
        stream.write(text)
        for _, array in arrays:
            stream.write(array.tobytes())


@dataclass(frozen=True)
class Graph:
    """An ONNX graph addressed by the engine's words for its tensors."""

    session: ort.InferenceSession
    bindings: dict[str, str]

    def run(self, outputs: list[str], **inputs: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        feeds = {self.bindings[word]: value for word, value in inputs.items()}
        return self.session.run([self.bindings[word] for word in outputs], feeds)


@dataclass(frozen=True)
class Pack:
    manifest: dict[str, Any]
    constants: dict[str, npt.NDArray[np.float32]]
    audio_encoder: Graph
    motion_generator: Graph

    @staticmethod
    def open(folder: Path) -> "Pack":
        manifest = json.loads((folder / "pack.json").read_text())

        def graph(role: str) -> Graph:
            spec = manifest["graphs"][role]
            session = ort.InferenceSession(
                folder / spec["file"], providers=["CPUExecutionProvider"]
            )
            return Graph(session, spec["bindings"])

        return Pack(
            manifest=manifest,
            constants=read_safetensors(folder / manifest["constants"]["file"]),
            audio_encoder=graph("audio_encoder"),
            motion_generator=graph("motion_generator"),
        )
