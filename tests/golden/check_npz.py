"""numpy reads the engine's .npz and finds the golden track: check_npz.py NPZ GOLDEN PACK_JSON."""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np


def golden_motion(file: Path) -> np.ndarray:
    data = file.read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + header_bytes])["motion"]
    begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
    return np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])


def main() -> None:
    npz, golden, pack = (Path(argument) for argument in sys.argv[1:4])
    with zipfile.ZipFile(npz) as archive:
        assert archive.testzip() is None, "a checksum is wrong"
    arrays = np.load(npz, allow_pickle=False)
    assert sorted(arrays.files) == ["fps", "motion", "names"], arrays.files
    assert arrays["motion"].dtype == np.float32
    assert np.array_equal(arrays["motion"], golden_motion(golden))
    manifest = json.loads(pack.read_text())
    numerator, denominator = (int(part) for part in manifest["frame_rate"].split("/"))
    assert float(arrays["fps"]) == numerator / denominator
    names = list(arrays["names"])
    assert len(names) == len(set(names)) == manifest["motion"]["dims"], names
    shapes = next(s for s in manifest["motion"]["layout"] if s["kind"] == "blendshapes")
    assert names[-len(shapes["channels"]) :] == shapes["channels"], names


if __name__ == "__main__":
    main()
