"""Figures of a pack on real speech that nothing was trained on.

The reference is PocketSphinx: it recognises each recording, then aligns the phones of what it
recognised. The same reference lips (`voices/lips.py`) that training uses are made from those
phones. Definitions:

- closure recall: share of the reference's p, b, m with a closed frame, one frame of slack;
- closure precision: share of runs of closed frames that touch a p, b, m, one frame of slack;
- a frame is closed when mouthPress is above half of its value in a full closure;
- f/v recall: the same for f, v with mouthRollLower above half of its value there;
- aperture correlation: of the opening of the lips with the reference's, over all frames;
- offset: the shift of the motion, in frames, at which that correlation is highest (parabola fit);
- rest in silence: share of frames more than 0.2 s from any speech with an opening below 0.05.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pocketsphinx

from studio.pack_runner import PackRunner
from studio.voices.arkit import BLENDSHAPE, FRAMES_PER_SECOND
from studio.voices.corpus import Session, labels_of
from studio.voices.performance import lips_to_motion, mouth_aperture
from studio.voices.phones import BILABIALS, LABIODENTALS, PHONES, SILENCE, Segment, from_arpabet

Array = npt.NDArray[np.float32]

_SPHINX_SILENCES = ("SIL", "+NSN+", "+SPN+", "<s>", "</s>", "<sil>")
_SPHINX_FRAME_S = 0.01
_FULL_PRESS, _FULL_ROLL = 0.38, 0.45
_REST_OPENING, _REST_MARGIN_S = 0.05, 0.2
_SLACK_FRAMES = 1
_TARGET_RMS = 0.07
_EMPTY_COUNTS = dict.fromkeys(("closures", "met", "runs", "right", "labio", "labio_met"), 0)


def read_recording(path: Path) -> Array:
    """Any sound file as 16 kHz mono at the level of normal speech."""
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "f32le", "-ac", "1", "-ar", "16000"]
    raw = subprocess.run([*command, "-"], capture_output=True, check=True).stdout
    samples = np.frombuffer(raw, np.float32)
    loudness = float(np.sqrt(np.mean(np.square(samples)) + 1e-12))
    return np.asarray(np.clip(samples * (_TARGET_RMS / loudness), -1, 1), dtype=np.float32)


class Aligner:
    """PocketSphinx 5 with its US English model."""

    def __init__(self) -> None:
        self._decoder = self._new_decoder()

    @staticmethod
    def _new_decoder() -> pocketsphinx.Decoder:
        return pocketsphinx.Decoder(loglevel="FATAL", beam=1e-60, wbeam=1e-40)

    def align(self, samples: Array) -> list[Segment] | None:
        """Phones with their times; None when nothing was recognised."""
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        decoder = self._decoder
        try:
            decoder.activate_search("_default")
            self._decode(pcm)
            found = decoder.hyp()
            if found is None or not found.hypstr.split():
                return None
            decoder.set_align_text(found.hypstr)
            self._decode(pcm)
            decoder.set_alignment()
            self._decode(pcm)
            alignment = decoder.get_alignment()
        except RuntimeError:  # how the decoder says that the words do not fit the sound
            self._decoder = self._new_decoder()
            return None
        if alignment is None:
            return None
        segments: list[Segment] = []
        for word in alignment:
            for phone in word:
                start = phone.start * _SPHINX_FRAME_S
                end = start + phone.duration * _SPHINX_FRAME_S
                if phone.name in _SPHINX_SILENCES:
                    segments.append(Segment(SILENCE, start, end))
                else:
                    segments += from_arpabet(phone.name, start, end)
        return segments

    def _decode(self, pcm: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()


def _runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _frames_of(segment: Segment, frames: int) -> slice:
    first = int(segment.start * FRAMES_PER_SECOND)
    last = max(first, int(segment.end * FRAMES_PER_SECOND - 1e-6))
    return slice(max(0, first - _SLACK_FRAMES), min(frames, last + 1 + _SLACK_FRAMES))


def reference_motion(session: Session, frames: int) -> Array:
    """The motion of the lips that the phones ask for."""
    lips = labels_of(session).lips
    rows = np.minimum(np.arange(frames) * 4 + 2, len(lips) - 1)
    return lips_to_motion(lips[rows].astype(np.float64), 4).astype(np.float32)


def count_closures(motion: Array, segments: Iterable[Segment]) -> dict[str, int]:
    counts = dict(_EMPTY_COUNTS)
    press = motion[:, [BLENDSHAPE["mouthPressLeft"], BLENDSHAPE["mouthPressRight"]]].mean(axis=1)
    closed = press > _FULL_PRESS / 2
    rolled = motion[:, BLENDSHAPE["mouthRollLower"]] > _FULL_ROLL / 2
    allowed = np.zeros(len(motion), bool)
    for segment in segments:
        near = _frames_of(segment, len(motion))
        if PHONES[segment.phone] in BILABIALS:
            counts["closures"] += 1
            counts["met"] += bool(closed[near].any())
            allowed[near] = True
        elif PHONES[segment.phone] in LABIODENTALS:
            counts["labio"] += 1
            counts["labio_met"] += bool(rolled[near].any())
    for first, last in _runs(closed):
        counts["runs"] += 1
        counts["right"] += bool(allowed[first : last + 1].any())
    return counts


def best_offset(made: Array, wanted: Array, reach: int = 4) -> float:
    """Frames by which `made` comes late (negative: early)."""
    shifts = list(range(-reach, reach + 1))
    inner = slice(reach, len(made) - reach)
    values = [np.corrcoef(np.roll(made, -s)[inner], wanted[inner])[0, 1] for s in shifts]
    at = int(np.argmax(values))
    if at in (0, len(shifts) - 1):
        return float(shifts[at])
    left, middle, right = values[at - 1 : at + 2]
    return float(shifts[at] + 0.5 * (left - right) / (left - 2 * middle + right))


def loudness_baseline(samples: Array, frames: int) -> Array:
    """A mouth that opens with the sound's level and knows no phones."""
    padded = np.pad(samples, (0, max(0, frames * 640 - len(samples))))[: frames * 640]
    level = np.sqrt(np.mean(np.square(padded.reshape(frames, 640)), axis=1))
    return np.asarray(np.clip(level / (np.quantile(level, 0.9) + 1e-9), 0, 1), dtype=np.float32)


def align_folder(recordings: Iterable[Path], cache: Path) -> dict[str, list[list[float]]]:
    """Alignments by file name, remembered in `cache` (JSON)."""
    if cache.exists():
        stored: dict[str, list[list[float]]] = json.loads(cache.read_text("utf-8"))
        return stored
    aligner, found = Aligner(), {}
    for path in recordings:
        segments = aligner.align(read_recording(path))
        if segments:
            found[path.name] = [[s.phone, s.start, s.end] for s in segments]
    cache.write_text(json.dumps(found), encoding="utf-8")
    return found


def evaluate_speech(
    runner: PackRunner, recordings: list[Path], alignments: dict[str, list[list[float]]]
) -> dict[str, float]:
    """The figures of the module's description over all recordings."""
    totals = dict(_EMPTY_COUNTS)
    made_all, wanted_all, loud_all, at_rest, right_phones = [], [], [], [], []
    for path in recordings:
        if path.name not in alignments:
            continue
        samples = read_recording(path)
        segments = [Segment(int(p), a, b) for p, a, b in alignments[path.name]]
        features, logits = runner.features(samples)
        motion, frames = runner.motion(features), len(features)
        for name, count in count_closures(motion, segments).items():
            totals[name] += count
        session = Session(path.name, True, samples, segments)
        made = mouth_aperture(motion.astype(np.float64)).astype(np.float32)
        wanted = mouth_aperture(reference_motion(session, frames).astype(np.float64))
        made_all.append(made)
        wanted_all.append(wanted.astype(np.float32))
        loud_all.append(loudness_baseline(samples, frames))
        phones = labels_of(session).phones
        rows = np.minimum(np.arange(frames) * 4 + 2, len(phones) - 1)
        spoken = phones[rows] != SILENCE
        right_phones.append((logits.argmax(axis=1) == phones[rows])[spoken])
        margin = int(_REST_MARGIN_S * FRAMES_PER_SECOND)
        near_speech = np.convolve(spoken, np.ones(2 * margin + 1), "same") > 0
        at_rest.append(made[~near_speech] < _REST_OPENING)
    made, wanted = np.concatenate(made_all), np.concatenate(wanted_all)
    recall = totals["met"] / max(1, totals["closures"])
    precision = totals["right"] / max(1, totals["runs"])
    rest = np.concatenate(at_rest)
    return {
        "recordings": len(made_all),
        "bilabials": totals["closures"],
        "closure_recall": recall,
        "closure_precision": precision,
        "closure_f1": 2 * recall * precision / max(1e-9, recall + precision),
        "labiodental_recall": totals["labio_met"] / max(1, totals["labio"]),
        "aperture_correlation": float(np.corrcoef(made, wanted)[0, 1]),
        "loudness_correlation": float(np.corrcoef(np.concatenate(loud_all), wanted)[0, 1]),
        "offset_frames": best_offset(made, wanted),
        "rest_in_silence": float(rest.mean()) if len(rest) else 1.0,
        "phone_accuracy": float(np.concatenate(right_phones).mean()),
    }


def evaluate_sounds(runner: PackRunner, seed: int = 3) -> dict[str, float]:
    """Largest opening of the mouth (99th percentile) for sounds that are not speech."""
    seconds, rate = 8, 16000
    time = np.arange(seconds * rate) / rate
    rng = np.random.default_rng(seed)
    gate = (time * 2 % 1 < 0.5).astype(float)
    notes = 220 * 2 ** (rng.integers(0, 24, seconds * 2) / 12)
    melody = np.sin(2 * np.pi * np.cumsum(np.repeat(notes, rate // 2)) / rate)
    noise = rng.standard_normal(len(time))
    spectrum = np.fft.rfft(noise)
    hertz = np.fft.rfftfreq(len(time), 1 / rate)
    breath = np.fft.irfft(spectrum * np.exp(-((np.log(np.maximum(hertz, 20) / 1500)) ** 2)))
    sounds = {
        "silence": np.zeros(len(time)),
        "hum_50_hz": np.sin(2 * np.pi * 50 * time),
        "beeps_1_khz": np.sin(2 * np.pi * 1000 * time) * gate,
        "tones_dtmf": (np.sin(2 * np.pi * 697 * time) + np.sin(2 * np.pi * 1336 * time)) * gate,
        "melody": melody,
        "white_noise": noise,
        "breath": breath * np.sin(np.pi * time) ** 2,
    }
    figures: dict[str, float] = {}
    for name, sound in sounds.items():
        level = np.sqrt(np.mean(np.square(sound)) + 1e-12)
        scaled = (sound * (_TARGET_RMS / level if name != "silence" else 0)).astype(np.float32)
        motion = runner.motion(runner.features(scaled)[0])
        opening = mouth_aperture(motion.astype(np.float64))
        figures[f"opening_{name}"] = float(np.quantile(opening, 0.99))
    return figures


def evaluate_head(runner: PackRunner, recordings: list[Path], seeds: int = 4) -> dict[str, float]:
    """How the head moves in a minute of speech: spread (degrees), jerk, blinks a minute."""
    samples = np.concatenate([read_recording(p) for p in recordings])[: 60 * 16000]
    features, _ = runner.features(samples)
    tracks = [runner.motion(features, seed=seed) for seed in range(seeds)]
    pose = np.stack([t[:, 1:4] for t in tracks])
    blink = [t[:, BLENDSHAPE["eyeBlinkLeft"]] for t in tracks]
    per_track = [len(_runs(b > 0.5)) / (len(b) / FRAMES_PER_SECOND / 60) for b in blink]
    closed = [b[a : z + 1].max() for b in blink for a, z in _runs(b > 0.5)]
    means = pose.mean(axis=1)
    return {
        "pitch_std_deg": float(pose[..., 0].std()),
        "yaw_std_deg": float(pose[..., 1].std()),
        "roll_std_deg": float(pose[..., 2].std()),
        "pose_jerk": float(np.abs(np.diff(pose, 3, axis=1)).mean()),
        "blinks_a_minute": float(np.mean(per_track)),
        "blink_depth": float(np.mean(closed)) if closed else 0.0,
        "yaw_mean_spread_over_seeds_deg": float(means[:, 1].std()),
    }
