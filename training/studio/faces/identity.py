"""Who a presenter is: shape weights, colours, hair style, clothes, light and backdrop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from studio.faces.makehuman import AGES, RACES, SEXES, build_name, macro_name

HAIR_STYLES = ("side", "long", "bob", "back", "curly", "buzz", "bald")
SUIT, BLOUSE_JACKET, V_NECK_JACKET, KNIT = range(4)
Colour = tuple[float, float, float]

# Columns of the table of looks that the shader reads, three each for colours.
_COLOURS = ("skin", "lips", "iris", "hair", "brows", "jacket", "shirt", "tie")
_SCALARS = (
    "melanin", "freckles", "lipstick", "clothes", "stubble", "blush", "age", "roughness",
    "texture_x", "key_x", "key_y", "key", "fill", "rim", "ambient", "teeth", "eye_shadow",
    "stripes", "scalp",
)  # fmt: skip
LOOK_COLUMNS = {name: slice(3 * i, 3 * i + 3) for i, name in enumerate(_COLOURS)} | {
    name: slice(3 * len(_COLOURS) + i, 3 * len(_COLOURS) + i + 1) for i, name in enumerate(_SCALARS)
}


def srgb(red: float, green: float, blue: float) -> Colour:
    """Linear light from 0..255 of a display."""
    return ((red / 255) ** 2.2, (green / 255) ** 2.2, (blue / 255) ** 2.2)


_SKINS = [srgb(*c) for c in ((236, 200, 178), (226, 184, 158), (205, 160, 130), (180, 132, 102),
                             (142, 104, 82), (108, 79, 63), (82, 60, 49))]  # fmt: skip
_HAIRS = [srgb(*c) for c in ((26, 20, 18), (44, 30, 24), (72, 48, 34), (104, 74, 48),
                             (150, 112, 70), (190, 156, 104), (96, 50, 30), (150, 146, 142),
                             (200, 198, 194))]  # fmt: skip
_IRISES = [srgb(*c) for c in ((60, 38, 24), (84, 56, 32), (110, 92, 56), (84, 110, 128),
                              (104, 130, 150), (90, 112, 80))]  # fmt: skip
_JACKETS = [srgb(*c) for c in ((34, 40, 58), (28, 28, 32), (70, 72, 80), (40, 62, 96),
                               (96, 32, 44), (30, 72, 70), (205, 200, 192),
                               (90, 60, 88))]  # fmt: skip
_SHIRTS = [srgb(*c) for c in ((232, 234, 238), (206, 220, 240), (240, 230, 222), (60, 60, 66),
                              (222, 190, 190))]  # fmt: skip
_TIES = [srgb(*c) for c in ((120, 24, 34), (30, 50, 110), (60, 60, 70), (30, 90, 80),
                            (110, 70, 120))]  # fmt: skip
_LARGER_EYES = 0.35
_OPPOSITES = (("-incr", "-decr"), ("-up", "-down"), ("-in", "-out"), ("-forward", "-backward"),
              ("-convex", "-concave"))  # fmt: skip


@dataclass(frozen=True)
class Hair:
    style: str
    seed: int
    length: float = 1.0
    volume: float = 1.0
    part: float = 0.35
    curl: float = 0.0
    curl_rate: float = 1.6
    mess: float = 0.05
    recede: float = 0.0
    strand_width: float = 0.016


@dataclass(frozen=True)
class Backdrop:
    """A studio out of focus; `plain` is one even colour (a green screen)."""

    seed: int
    colour: Colour
    accent: Colour
    panels: int = 7
    lights: int = 16
    plain: bool = False


@dataclass(frozen=True)
class Identity:
    """`shape` maps MakeHuman targets to weights, `look` the shader's columns to values."""

    shape: dict[str, float]
    look: dict[str, float | Colour]
    hair: Hair
    backdrop: Backdrop
    head_size: float = 1.0
    shoulder_pads: float = 1.0
    smile: float = 0.3

    @property
    def has_collar(self) -> bool:
        return self.look["clothes"] == SUIT

    def row(self) -> np.ndarray:
        """The look as one row of LOOK_COLUMNS."""
        values = np.zeros(3 * len(_COLOURS) + len(_SCALARS), np.float32)
        for name, column in LOOK_COLUMNS.items():
            values[column] = self.look[name]
        return values


@dataclass(frozen=True)
class Wanted:
    """What is not left to chance; None is drawn."""

    race: Sequence[float] | None = None
    male: float | None = None
    old: float | None = None
    weight: float | None = None
    skin: float | None = None
    hair_colour: int | None = None
    iris: int | None = None
    clothes: int | None = None
    hair: Hair | None = None
    backdrop: Backdrop | None = None
    variation: float = 1.0
    extra_shape: dict[str, float] = field(default_factory=dict)
    look: dict[str, float | Colour] = field(default_factory=dict)


def _blend(palette: list[Colour], position: float) -> np.ndarray:
    left = min(int(position), len(palette) - 2)
    share = position - left
    return np.array(palette[left]) * (1 - share) + np.array(palette[left + 1]) * share


def _shape(
    names: Sequence[str], race: Sequence[float], male: float, old: float, weight: float,
    variation: float, rng: np.random.Generator,
) -> dict[str, float]:  # fmt: skip
    sexes, ages = dict(zip(SEXES, (1 - male, male), strict=True)), dict(
        zip(AGES, (1 - old, old), strict=True))  # fmt: skip
    weights: dict[str, float] = {}
    for sex, sex_share in sexes.items():
        for age, age_share in ages.items():
            share = sex_share * age_share
            for name, part in zip(RACES, race, strict=True):
                weights[macro_name(name, sex, age)] = part * share
            weights[build_name(sex, age, "averageweight")] = share * (1 - abs(weight))
            extreme = "maxweight" if weight > 0 else "minweight"
            weights[build_name(sex, age, extreme)] = share * abs(weight)
    known, macro = set(names), set(weights)
    for name in names:
        if name not in macro and not name.startswith(("universal-", *RACES)):
            _draw_detail(weights, name, known, variation, rng)
    weights["mouth-angles-up"] = max(weights.get("mouth-angles-up", 0), 0.15)
    weights.pop("mouth-angles-down", None)
    return {name: value for name, value in weights.items() if name in known}


def _draw_detail(
    weights: dict[str, float], name: str, known: set[str], variation: float,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    whole_head = name.startswith("head-") and name.count("-") == 1
    grows = name.endswith(("-incr", "-up", "-in", "-forward", "-convex", "-1-l", "-1-r"))
    if not (grows or whole_head or name.startswith("asym")):
        return
    spread = 0.25
    for prefixes, value in (((("nose", "mouth", "cheek", "chin")), 0.35), (("eye",), 0.28),
                            (("asym",), 0.16)):  # fmt: skip
        if name.startswith(prefixes):
            spread = value
            break
    value = float(np.clip(rng.normal(0, spread * variation), -0.75, 0.75))
    if name.startswith(("head-age", "mouth-trans", "eye-trans")) or "push" in name:
        value *= 0.3
    if whole_head:
        value = abs(value) * 0.7
    if name == "eye-scale-incr":  # MakeHuman's eyes are small
        value = min(value + _LARGER_EYES, 1.0)
    opposite = name
    for grow, shrink in _OPPOSITES:
        opposite = opposite.replace(grow, shrink)
    if name.startswith("asym"):
        weights[name] = abs(value) * 0.5
    elif value > 0:
        weights[name] = value
    elif opposite != name and opposite in known:
        weights[opposite] = -value


def _draw_hair(female: bool, clothes_seed: int, rng: np.random.Generator) -> Hair:
    if female:
        style = str(rng.choice(["long", "bob", "back", "curly", "side", "long"]))
    else:
        style = str(rng.choice(["side", "curly", "buzz", "back", "bald"],
                               p=[0.54, 0.14, 0.18, 0.08, 0.06]))  # fmt: skip
    length, curl, rate, width = 1.0, 0.0, 1.6, 0.016
    if style == "curly":
        length, curl, rate, width = (
            rng.uniform(0.7, 1.5), rng.uniform(0.5, 0.9), rng.uniform(1.5, 2.4), 0.014
        )  # fmt: skip
    elif style in ("long", "bob"):
        length = rng.uniform(0.6, 1.2)
        curl, rate = float(rng.choice([0, 0.0, 0.10, 0.22])), rng.uniform(0.8, 1.4)
    return Hair(
        style, clothes_seed, length, rng.uniform(0.7, 1.5),
        float(rng.choice([0.0, 0.25, -0.25, 0.38, -0.38])), curl, rate, rng.uniform(0.03, 0.10),
        0.0 if female else float(rng.choice([0, 0, 0.1, 0.22])), width,
    )  # fmt: skip


def draw(names: Sequence[str], seed: int, wanted: Wanted | None = None) -> Identity:
    """An identity from the shapes `names`; the same seed gives the same identity."""
    rng = np.random.default_rng(seed)
    w = wanted or Wanted()
    race = w.race if w.race is not None else rng.dirichlet([0.6, 0.6, 0.6])
    male = w.male if w.male is not None else float(rng.choice([0.0, 1.0]) * 0.9 + 0.05)
    old = w.old if w.old is not None else float(np.clip(rng.beta(1.1, 2.2), 0, 0.9))
    weight = w.weight if w.weight is not None else float(rng.uniform(-0.6, 0.6))
    female = male < 0.5
    shape = _shape(names, race, male, old, weight, w.variation, rng)
    shape.update({k: v for k, v in w.extra_shape.items() if k in set(names)})
    darkness = float(
        np.clip(race[0] * 5.2 + race[1] * 1.8 + race[2] * 0.7 + rng.normal(0, 0.6), 0, 6)
    )
    darkness = w.skin if w.skin is not None else darkness
    skin = _blend(_SKINS, darkness) * (0.66 + 0.05 * darkness)
    grey = old > 0.6 and rng.random() < 0.6
    options = [7, 8] if grey else [0, 0, 0, 1] if darkness > 2 else [0, 1, 2, 3, 4, 5, 6]
    hair_index = int(rng.choice(options)) if w.hair_colour is None else w.hair_colour
    hair_colour = np.array(_HAIRS[hair_index])
    iris_index = int(rng.choice([0, 0, 1] if darkness > 1.6 else 6)) if w.iris is None else w.iris
    lipstick = float(rng.uniform(0.4, 1.0) if female else rng.uniform(0, 0.15))
    lipstick = float(w.look.get("lipstick", lipstick))  # type: ignore[arg-type]
    bare = skin * np.array([0.80, 0.50, 0.50]) * (1 - lipstick)
    made_up = np.array(srgb(176, 64, 70)) * rng.uniform(0.7, 1.1) * 0.6
    lips = bare + lipstick * (made_up + 0.4 * skin * np.array([0.85, 0.45, 0.48]))
    clothes = int(rng.choice([1, 2, 2, 3] if female else [0, 0, 0, 3]))
    hair = w.hair or _draw_hair(female, int(rng.integers(9973)), rng)
    look: dict[str, float | Colour] = {
        "skin": tuple(skin), "lips": tuple(lips),
        "iris": tuple(np.array(_IRISES[iris_index]) * 1.15),
        "hair": tuple(hair_colour), "brows": tuple(hair_colour * 0.55 + [0.004, 0.003, 0.002]),
        "jacket": _JACKETS[rng.integers(8)], "shirt": _SHIRTS[rng.integers(5)],
        "tie": _TIES[rng.integers(5)], "melanin": darkness / 6,
        "freckles": max(0.0, float(rng.normal(0.1, 0.25))) if darkness < 2 else 0.0,
        "lipstick": lipstick, "clothes": clothes if w.clothes is None else w.clothes,
        "stubble": 0.0 if female else float(rng.choice([0, 0.15, 0.35, 0.7])),
        "blush": rng.uniform(0.6, 1.2), "age": max(0.0, old - 0.25),
        "roughness": rng.uniform(0.3, 1.0), "texture_x": rng.random(),
        "key_x": rng.choice([-1, 1]) * rng.uniform(0.25, 0.65), "key_y": rng.uniform(0.35, 0.65),
        "key": rng.uniform(1.15, 1.55), "fill": rng.uniform(0.30, 0.55),
        "rim": rng.uniform(0.35, 0.9), "ambient": rng.uniform(0.32, 0.5),
        "teeth": rng.uniform(0.82, 1.0), "eye_shadow": rng.uniform(0.5, 1.1),
        "stripes": float(rng.choice([0, 0, 0.5])), "scalp": 0.0 if hair.style == "bald" else 1.0,
    }  # fmt: skip
    look.update(w.look)
    colour = rng.dirichlet([6, 6, 7]) * rng.uniform(0.12, 0.55)
    accent = rng.uniform(0.05, 0.8, 3)
    backdrop = w.backdrop or Backdrop(
        int(rng.integers(1 << 30)), tuple(colour), tuple(accent), int(rng.integers(3, 10)),
        int(rng.integers(0, 22)),
    )  # fmt: skip
    size = 1.0 if wanted is not None else float(rng.uniform(0.94, 1.06))
    return Identity(shape, look, hair, backdrop, size, 0.5 if female else 1.0)


def presenters(names: Sequence[str]) -> dict[str, Identity]:
    """The three that ship."""
    slim = {"chin-width-decr": 0.5, "head-fat-decr": 0.35, "forehead-scale-vert-decr": 0.5}
    anna = Wanted(
        (0.05, 0.05, 0.9), 0.03, 0.12, -0.1, 0.7, 3, 3, V_NECK_JACKET,
        Hair("long", 77, 0.95, 1.15, 0.28, 0.16, 1.1),
        Backdrop(5, (0.03, 0.06, 0.13), (0.15, 0.45, 0.9), 8, 12), 0.55,
        {**slim, "head-oval": 0.5, "cheek-bones-incr": 0.4, "eye-scale-incr": 0.95,
         "eye-height2-incr": 0.4,
         "mouth-upperlip-volume-incr": 0.3, "mouth-lowerlip-volume-incr": 0.3,
         "head-scale-horiz-decr": 0.45, "nose-scale-horiz-decr": 0.25},
        {"lipstick": 0.75, "jacket": srgb(36, 52, 92), "shirt": srgb(238, 236, 232), "key_x": -0.42,
         "freckles": 0.1, "stripes": 0.0, "teeth": 0.97, "eye_shadow": 0.5},
    )  # fmt: skip
    marcus = Wanted(
        (0.92, 0.03, 0.05), 0.97, 0.18, 0.05, 4.6, 0, 0, SUIT,
        Hair("buzz", 42, 0.6, recede=0.05, strand_width=0.012),
        Backdrop(9, (0.10, 0.10, 0.12), (0.9, 0.55, 0.2), 7, 18), 0.5,
        {"head-oval": 0.35, "eye-scale-incr": 0.75, "eye-height2-incr": 0.35,
         "cheek-bones-incr": 0.3, "head-fat-decr": 0.2,
         "mouth-scale-horiz-incr": 0.1, "eyebrows-angle-up": 0.2, "nose-scale-horiz-decr": 0.15},
        {"stubble": 0.45, "jacket": srgb(40, 42, 48), "shirt": srgb(226, 232, 242),
         "tie": srgb(112, 26, 38), "key_x": 0.45, "key": 1.6, "fill": 0.6, "rim": 0.9,
         "stripes": 0.0},
    )  # fmt: skip
    mei = Wanted(
        (0.05, 0.75, 0.2), 0.06, 0.30, -0.15, 1.5, 0, 0, BLOUSE_JACKET,
        Hair("bob", 13, 1.0, 1.1, -0.25),
        Backdrop(14, (0.16, 0.17, 0.18), (0.2, 0.7, 0.75), 9, 6), 0.5,
        {**slim, "head-oval": 0.6, "eye-scale-incr": 0.95, "eye-height2-incr": 0.4,
         "cheek-bones-incr": 0.4, "mouth-upperlip-volume-incr": 0.2, "head-scale-horiz-decr": 0.6,
         "nose-scale-horiz-decr": 0.2},
        {"lipstick": 0.55, "jacket": srgb(120, 36, 48), "shirt": srgb(240, 236, 230),
         "key_x": -0.38, "stripes": 0.0, "age": 0.15},
    )  # fmt: skip
    return {
        "anna": draw(names, 11, anna),
        "marcus": draw(names, 23, marcus),
        "mei": draw(names, 31, mei),
    }
