"""Reference of driving keypoints -> face crop: warp and decoder graphs in f32 with onnxruntime.

The engine has to agree with it to 50 dB; run it to make the golden pictures of the tests:

    python reference_image.py --pack packs/studio --avatar avatars/anna \
        --golden tests/golden/speech.safetensors --rows 5 21 -o tests/golden
"""

import argparse
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from reference_pack import read_safetensors


def source_tensors(avatar: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The avatar's cached tensors of source frame 0 in f32; u8 means value / 255."""
    tensors = read_safetensors(avatar / "tensors.safetensors")
    return {
        name: (t[:1] / np.float32(255) if t.dtype == np.uint8 else t[:1]).astype(np.float32)
        for name, t in tensors.items()
    }


def draw(pack: Path, avatar: Path, keypoints: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """RGB crop [3, size, size] in 0..1 of driving keypoints [K, 3]."""
    graphs = json.loads((pack / "pack.json").read_text())["graphs"]
    known: dict[str, Any] = dict(source_tensors(avatar))
    for role in ("warp", "decoder"):
        spec = graphs[role]
        session = ort.InferenceSession(pack / spec["file"], providers=["CPUExecutionProvider"])
        driving = spec["bindings"].get("driving_keypoints")
        if driving is not None:
            known[driving] = keypoints[None]
        feeds = {i.name: known[i.name] for i in session.get_inputs()}
        names = [o.name for o in session.get_outputs()]
        known |= dict(zip(names, session.run(names, feeds), strict=True))
    return known[graphs["decoder"]["bindings"]["image"]][0]


def write_png(file: Path, image: npt.NDArray[np.float32]) -> None:
    """8-bit RGB, each row unfiltered."""
    pixels = np.rint(image.clip(0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pack", type=Path, required=True, help="model pack folder")
    parser.add_argument("--avatar", type=Path, required=True, help="avatar folder")
    parser.add_argument("--golden", type=Path, required=True, help="file with golden keypoints")
    parser.add_argument("--rows", type=int, nargs="+", required=True, help="keypoint rows to draw")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the pictures")
    arguments = parser.parse_args()
    keypoints = read_safetensors(arguments.golden)["keypoints"]
    for row in arguments.rows:
        image = draw(arguments.pack, arguments.avatar, keypoints[row])
        write_png(arguments.output / f"crop_{row}.png", image)


if __name__ == "__main__":
    main()
