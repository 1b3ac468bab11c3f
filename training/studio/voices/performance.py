"""A procedural performance: how a presenter moves while saying given phones.

Lips follow `lips.py`; head, brows, blinks and gaze are drawn at random around the speech's rhythm.
Frame i covers [40 i, 40 i + 40) ms and is sampled at its centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studio.voices.arkit import (
    BLENDSHAPE,
    EMOTIONS,
    FRAMES_PER_SECOND,
    MOTION_DIMS,
    PITCH,
    POSE,
    ROLL,
    SCALE,
    YAW,
)
from studio.voices.lips import LIP

Array = npt.NDArray[np.float64]
_SIDES = ("Left", "Right")

# What an emotion adds to the blendshapes; names without a side stand for both.
_EMOTION_OFFSETS: dict[str, dict[str, float]] = {
    "angry": {"browDown": 0.45, "noseSneer": 0.15, "eyeSquint": 0.2, "mouthFrown": 0.1},
    "disgust": {
        "noseSneer": 0.4, "browDown": 0.25, "mouthFrown": 0.2, "cheekSquint": 0.2,
        "eyeSquint": 0.15,
    },
    "fear": {"browInnerUp": 0.45, "eyeWide": 0.35, "mouthStretch": 0.18},
    "happy": {"mouthSmile": 0.39, "cheekSquint": 0.3, "eyeSquint": 0.15, "browOuterUp": 0.1},
    "neutral": {"mouthSmile": 0.03},
    "sad": {"browInnerUp": 0.4, "mouthFrown": 0.3, "eyeLookDown": 0.08},
    "surprise": {"browInnerUp": 0.4, "browOuterUp": 0.45, "eyeWide": 0.4},
    "contempt": {
        "mouthSmileLeft": 0.22, "mouthDimpleLeft": 0.3, "browOuterUpRight": 0.15,
        "browDownLeft": 0.1,
    },
}  # fmt: skip
_JAW_GAIN = {"angry": 1.12, "disgust": 0.95, "happy": 1.08, "sad": 0.85, "surprise": 1.1,
             "contempt": 0.95}  # fmt: skip
_POSE_OFFSETS = {
    "sad": {PITCH: 3.0}, "surprise": {PITCH: -1.2}, "contempt": {PITCH: -1.5, YAW: 2.0},
}  # fmt: skip

# Standard deviations of posture targets and of the slow sway (pitch, yaw, roll; degrees).
_POSTURE_STD = np.array([1.6, 3.6, 1.7])
_SWAY_STD = (0.9, 1.5, 0.8)
_BLINK_GAP_FRAMES = 14


@dataclass(frozen=True)
class Prosody:
    """Per frame: speech (0 or 1), loudness (about 1 for median speech), relative pitch."""

    speech: Array
    loudness: Array
    pitch: Array


def both_sides(name: str) -> list[int]:
    """Dims of a blendshape, or of its left and right half when it has no side itself."""
    if name in BLENDSHAPE:
        return [BLENDSHAPE[name]]
    return [BLENDSHAPE[name + side] for side in _SIDES]


def mouth_aperture(motion: Array) -> Array:
    """Opening of the lips as one number, from motion vectors [..., 59]."""

    def mean(name: str) -> Array:
        return np.asarray(motion[..., both_sides(name)].mean(axis=-1))

    jaw = motion[..., BLENDSHAPE["jawOpen"]] - motion[..., BLENDSHAPE["mouthClose"]]
    return np.maximum(jaw, 0) + 0.3 * mean("mouthLowerDown") + 0.3 * mean("mouthUpperUp")


def smooth(curve: Array, frames: int) -> Array:
    """Hann-weighted running mean."""
    weights = np.hanning(frames + 2)[1:-1]
    padded = np.pad(curve, (frames // 2, frames - 1 - frames // 2), mode="edge")
    return np.convolve(padded, weights / weights.sum(), "valid")


def drift(
    rng: np.random.Generator, frames: int, lowest_hz: float, highest_hz: float, std: float
) -> Array:
    """Band-limited noise of the given standard deviation."""
    margin = 250
    length = int(2 ** np.ceil(np.log2(frames + 2 * margin)))
    frequency = np.fft.rfftfreq(length, 1 / FRAMES_PER_SECOND)
    spectrum = rng.standard_normal((2, len(frequency)))
    inside = (frequency >= lowest_hz) & (frequency <= highest_hz)
    shaped = (spectrum[0] + 1j * spectrum[1]) * inside / np.maximum(frequency, lowest_hz)
    curve = np.fft.irfft(shaped, length)[margin : margin + frames]
    return curve / (curve.std() + 1e-9) * std


def lips_to_motion(lips: Array, emotion: int) -> Array:
    """The part of the motion that the phones alone decide: [n, 16] -> [n, 59]."""
    motion = np.zeros((len(lips), MOTION_DIMS))
    gain = _JAW_GAIN.get(EMOTIONS[emotion], 1.0)

    def lip(name: str) -> Array:
        return lips[:, LIP[name]]

    motion[:, BLENDSHAPE["jawOpen"]] = lip("jaw") * gain
    motion[:, BLENDSHAPE["mouthClose"]] = lip("close") * gain
    for shape, name in (
        ("mouthFunnel", "funnel"),
        ("mouthPucker", "pucker"),
        ("mouthRollLower", "roll_lower"),
        ("mouthRollUpper", "roll_upper"),
        ("mouthShrugLower", "shrug_lower"),
        ("tongueOut", "tongue"),
        ("jawForward", "jaw_forward"),
    ):
        motion[:, BLENDSHAPE[shape]] = lip(name)
    for side, uneven in zip(_SIDES, (1.04, 0.96), strict=True):
        motion[:, BLENDSHAPE["mouthStretch" + side]] = lip("stretch") * uneven
        motion[:, BLENDSHAPE["mouthSmile" + side]] = lip("spread") * uneven
        motion[:, BLENDSHAPE["mouthPress" + side]] = lip("press")
        lower = lip("lower_down") * uneven * (0.5 + 0.5 * gain)
        motion[:, BLENDSHAPE["mouthLowerDown" + side]] = lower
        motion[:, BLENDSHAPE["mouthUpperUp" + side]] = lip("upper_up") * uneven
    return motion


def perform(
    lips: Array, prosody: Prosody, emotion: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Motion [n, 59] and the blink curve [n] for lips [n, 16] at 25 frames a second."""
    frames = len(lips)
    motion = lips_to_motion(lips, emotion)
    _add_emotion(motion, lips, emotion, rng)
    talking = smooth(prosody.speech, 7) > 0.35
    turns = [i for i in range(1, frames) if talking[i] != talking[i - 1]]
    style = rng.uniform(0.6, 1.3)
    nods, brows = _accents(prosody, style, rng)
    pose = _posture(talking, turns, style, rng)
    activity = smooth(prosody.speech, 25) * 0.6 + 0.4
    for axis, std in enumerate(_SWAY_STD):
        pose[:, axis] += drift(rng, frames, 0.08, 0.55, std * style) * activity
    pose[:, 0] += nods - 1.3 * smooth(prosody.pitch * prosody.speech, 9) * style
    for dim, offset in _POSE_OFFSETS.get(EMOTIONS[emotion], {}).items():
        pose[:, dim - PITCH] += offset
    _place_head(motion, pose, rng)
    motion[:, BLENDSHAPE["browInnerUp"]] += brows * 0.7
    for side, uneven in zip(_SIDES, (1.05, 0.95), strict=True):
        motion[:, BLENDSHAPE["browOuterUp" + side]] += brows * uneven
    blinks = _blinks(frames, [t for t in turns if not talking[t]], rng)
    _add_eyes(motion, pose, blinks, EMOTIONS[emotion] == "sad", rng)
    motion[:, len(POSE) :] = np.clip(motion[:, len(POSE) :], 0, 1)
    return motion, blinks


def _add_emotion(motion: Array, lips: Array, emotion: int, rng: np.random.Generator) -> None:
    intensity = np.clip(0.85 + drift(rng, len(motion), 0.02, 0.15, 0.12), 0.5, 1.15)
    rounding = lips[:, LIP["funnel"]] + lips[:, LIP["pucker"]]
    free_lips = np.clip(1 - 1.2 * rounding, 0.2, 1) * (1 - 0.35 * lips[:, LIP["bilabial"]])
    for name, offset in _EMOTION_OFFSETS[EMOTIONS[emotion]].items():
        spreads_lips = name.startswith(("mouthSmile", "mouthStretch"))
        for dim in both_sides(name):
            motion[:, dim] += offset * intensity * (free_lips if spreads_lips else 1.0)


def _add_bump(curve: Array, centre: float, width: float, height: float) -> None:
    first, last = max(0, int(centre - 3 * width)), min(len(curve), int(centre + 3 * width) + 1)
    at = np.arange(first, last)
    curve[first:last] += height * np.exp(-0.5 * ((at - centre) / width) ** 2)


def _accents(prosody: Prosody, style: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Nods (degrees) and raised brows on prominent syllables."""
    frames = len(prosody.speech)
    strength = smooth(prosody.loudness * prosody.speech, 5)
    strength = strength + 0.25 * smooth(np.maximum(prosody.pitch, 0), 5)
    peaks: list[int] = []
    for i in range(3, frames - 3):
        highest = strength[i] == strength[i - 3 : i + 4].max()
        if highest and strength[i] > 0.75 and (not peaks or i - peaks[-1] > 6):
            peaks.append(i)
    nods, brows = np.zeros(frames), np.zeros(frames)
    usual = float(np.median(strength[peaks])) if peaks else 1.0
    for i in peaks:
        size = float(np.clip(strength[i] / (usual + 1e-6), 0.6, 1.8))
        if rng.random() < 0.30 * size:
            height = rng.uniform(1.2, 3.2) * size * style
            _add_bump(nods, i + rng.uniform(0, 3), rng.uniform(3, 5), height)
        if rng.random() < 0.22 * size:
            height = rng.uniform(0.12, 0.35) * size
            _add_bump(brows, i + rng.uniform(-2, 2), rng.uniform(4, 7), height)
    return nods, brows


def _posture(
    talking: npt.NDArray[np.bool_], turns: list[int], style: float, rng: np.random.Generator
) -> Array:
    """Pitch, yaw, roll that follow random targets through a critically damped spring."""
    frames = len(talking)
    at_random = np.cumsum(rng.exponential(95, size=frames // 60 + 2)).astype(int).tolist()
    changes = set([t for t in turns if rng.random() < 0.6] + at_random)
    pose = np.zeros((frames, 3))
    target, position, velocity = np.zeros(3), np.zeros(3), np.zeros(3)
    stiffness = rng.uniform(4.0, 6.5)
    step = 1 / FRAMES_PER_SECOND
    for i in range(frames):
        if i in changes:
            target = rng.standard_normal(3) * _POSTURE_STD * style * (1.0 if talking[i] else 0.6)
        force = stiffness**2 * (target - position) - 2 * stiffness * velocity
        velocity = velocity + force * step
        position = position + velocity * step
        pose[i] = position
    return pose


def _place_head(motion: Array, pose: Array, rng: np.random.Generator) -> None:
    """`pose` turns to the subject's left with positive yaw, the motion vector to the right."""
    frames = len(motion)
    motion[:, SCALE] = 1 + drift(rng, frames, 0.05, 0.25, 0.0036)
    motion[:, PITCH], motion[:, YAW], motion[:, ROLL] = pose[:, 0], -pose[:, 1], pose[:, 2]
    motion[:, POSE.index("tx")] = 0.0016 * pose[:, 1] + drift(rng, frames, 0.05, 0.3, 0.003)
    motion[:, POSE.index("ty")] = -0.0018 * pose[:, 0] + drift(rng, frames, 0.05, 0.3, 0.002)
    motion[:, POSE.index("tz")] = drift(rng, frames, 0.05, 0.2, 0.003)


def _blinks(frames: int, speech_ends: list[int], rng: np.random.Generator) -> Array:
    """Lid closure 0..1: random blinks three seconds apart and some at the ends of phrases."""
    times: list[float] = []
    at = rng.uniform(5, 60)
    while at < frames:
        times.append(at)
        at += float(np.clip(rng.gamma(3, 30), 18, 220))
    times += [end + rng.uniform(-3, 6) for end in speech_ends if rng.random() < 0.45]
    curve, last = np.zeros(frames), -np.inf
    frame = np.arange(frames)
    for centre in sorted(times):
        if centre - last < _BLINK_GAP_FRAMES:
            continue
        last = centre
        closing, hold, opening = rng.uniform(1.6, 2.4), rng.uniform(0.6, 1.2), rng.uniform(3.2, 5)
        at_blink = frame - centre
        falling = _ramp((at_blink + hold / 2 + closing) / closing)
        rising = _ramp((opening - (at_blink - hold / 2)) / opening)
        blink = np.where(at_blink < -hold / 2, falling, rising)
        blink[np.abs(at_blink) <= max(hold / 2, 0.5)] = 1
        curve = np.maximum(curve, blink)
    return curve


def _ramp(x: Array) -> Array:
    return 0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0, 1))


def _add_eyes(
    motion: Array, pose: Array, blinks: Array, sad: bool, rng: np.random.Generator
) -> None:
    """Gaze held on the camera half of the time, against the head's turn; lids follow the gaze."""
    frames = len(motion)
    sideways, down = np.zeros(frames), np.zeros(frames)
    at = 0
    while at < frames:
        length = int(rng.uniform(15, 65))
        spread = (0.3, 0.4) if rng.random() < 0.5 else (5.0, 2.5)
        sideways[at : at + length] = rng.standard_normal() * spread[0]
        down[at : at + length] = rng.standard_normal() * spread[1]
        at += length
    degrees_at_full = 30
    sideways = (smooth(sideways, 3) - 0.6 * pose[:, 1]) / degrees_at_full
    down = (smooth(down, 3) - 0.6 * pose[:, 0]) / degrees_at_full
    for outer, inner, amount in (("Left", "Right", sideways), ("Right", "Left", -sideways)):
        motion[:, BLENDSHAPE["eyeLookOut" + outer]] += np.maximum(amount, 0)
        motion[:, BLENDSHAPE["eyeLookIn" + inner]] += np.maximum(amount, 0)
    lids = np.clip(0.35 * np.maximum(down, 0) + (0.12 if sad else 0.02), 0, 1)
    for side in _SIDES:
        motion[:, BLENDSHAPE["eyeLookDown" + side]] += np.maximum(down, 0)
        motion[:, BLENDSHAPE["eyeLookUp" + side]] += np.maximum(-down, 0)
        motion[:, BLENDSHAPE["eyeBlink" + side]] = np.maximum(blinks, lids)
        motion[:, BLENDSHAPE["eyeWide" + side]] *= 1 - blinks
        motion[:, BLENDSHAPE["eyeSquint" + side]] *= 1 - 0.5 * blinks
