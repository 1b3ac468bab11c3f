"""Speech synthesisers that tell when each phone sounds: flite, espeak-ng and festival."""

from __future__ import annotations

import ctypes
import math
import os
import random
import subprocess
import tempfile
import wave
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studio.voices.phones import (
    PHONE_INDEX,
    SILENCE,
    Segment,
    from_arpabet,
    from_ipa,
)

Samples = npt.NDArray[np.float32]

SAMPLE_RATE_HZ = 16000
TARGET_RMS = 0.07  # -23 dBFS, the level that the encoder calls normal speech
_EDGE_BEFORE_S, _EDGE_AFTER_S = 0.12, 0.18
_FLITE_PITCH_HZ = {"slt": 170.0, "rms": 95.0, "awb": 120.0, "kal16": 105.0}
_FESTIVAL_TIMEOUT_S = 150.0


@dataclass(frozen=True)
class Utterance:
    """Mono samples at 16 kHz with the phones that they hold, in order and without gaps."""

    samples: Samples
    segments: list[Segment]


def read_wav(path: Path) -> Samples:
    """A 16-bit PCM file as mono float at 16 kHz."""
    with wave.open(str(path), "rb") as stream:
        rate, channels = stream.getframerate(), stream.getnchannels()
        raw = np.frombuffer(stream.readframes(stream.getnframes()), dtype="<i2")
    samples = raw.reshape(-1, channels).mean(axis=1) / 32768.0
    return to_sample_rate(samples, rate)


def to_sample_rate(samples: npt.NDArray[np.floating], rate: int) -> Samples:
    """Resamples to 16 kHz in the frequency domain; speech starts and ends in near silence."""
    if rate != SAMPLE_RATE_HZ:
        divisor = math.gcd(SAMPLE_RATE_HZ, rate)
        up, down = SAMPLE_RATE_HZ // divisor, rate // divisor
        wanted = math.ceil(len(samples) * up / down)
        blocks = 1 << math.ceil(math.log2(math.ceil(len(samples) / down) + 1))
        spectrum = np.fft.rfft(samples, blocks * down)
        bins = blocks * up // 2 + 1
        spectrum = np.pad(spectrum[:bins], (0, max(0, bins - len(spectrum))))
        samples = np.fft.irfft(spectrum, blocks * up)[:wanted] * (up / down)
    return np.asarray(samples, dtype=np.float32)


def tidy(utterance: Utterance) -> Utterance | None:
    """Trims the edges to little silence and sets the level; None when nothing is spoken."""
    length = len(utterance.samples) / SAMPLE_RATE_HZ
    spoken = [s for s in utterance.segments if s.phone != SILENCE and s.start < length]
    if not spoken:
        return None
    start = max(0.0, spoken[0].start - _EDGE_BEFORE_S)
    end = min(length, spoken[-1].end + _EDGE_AFTER_S)
    samples = utterance.samples[int(start * SAMPLE_RATE_HZ) : int(end * SAMPLE_RATE_HZ)]
    loudness = float(np.sqrt(np.mean(np.square(samples)) + 1e-12))
    segments = [
        Segment(s.phone, max(s.start, start) - start, min(s.end, end) - start)
        for s in utterance.segments
        if min(s.end, end) - max(s.start, start) > 1e-3
    ]
    return Utterance(samples * np.float32(TARGET_RMS / loudness), segments)


def flite(voice: str, text: str, rng: random.Random) -> Utterance | None:
    """One of flite's built-in voices with random speed and pitch."""
    pitch = _FLITE_PITCH_HZ[voice] * rng.uniform(0.78, 1.35)
    settings = {
        "duration_stretch": rng.uniform(0.68, 1.2),
        "int_f0_target_mean": pitch,
        "int_f0_target_stddev": pitch * rng.uniform(0.07, 0.2),
    }
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "speech.wav"
        command = ["flite", "-voice", voice, "-psdur", "-t", text, "-o", str(target)]
        for name, value in settings.items():
            command += ["--setf", f"{name}={value:.3f}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        samples = read_wav(target)
    segments: list[Segment] = []
    at = 0.0
    for token in done.stdout.split():  # "name:end_in_seconds"
        name, _, end = token.rpartition(":")
        segments += from_arpabet(name, at, float(end))
        at = float(end)
    return tidy(Utterance(samples, segments))


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    """espeak_EVENT of speak_lib.h."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


class Espeak:
    """libespeak-ng with its phone events; the library allows one object per process."""

    _SYNCHRONOUS_OUTPUT, _PHONEME_EVENTS, _PHONEME_IPA = 2, 1, 2
    _RATE, _PITCH, _RANGE = 1, 3, 4
    _EVENT_END, _EVENT_PHONEME = 0, 7
    _CHARS_AUTO = 0

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libespeak-ng.so.1")
        data = os.environ.get("ESPEAK_DATA_PATH")
        self._rate = self._library.espeak_Initialize(
            self._SYNCHRONOUS_OUTPUT,
            500,
            data.encode() if data else None,
            self._PHONEME_EVENTS | self._PHONEME_IPA,
        )
        if self._rate <= 0:
            raise RuntimeError("libespeak-ng.so.1: cannot start, wanted its voice data installed")
        self._chunks: list[npt.NDArray[np.int16]] = []
        self._events: list[tuple[int, str]] = []
        self._callback = _CALLBACK(self._collect)  # kept: the library holds the address
        self._library.espeak_SetSynthCallback(self._callback)

    def _collect(
        self,
        samples: ctypes._Pointer[ctypes.c_short],
        count: int,
        events: ctypes._Pointer[_Event],
    ) -> int:
        if samples and count > 0:
            self._chunks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        index = 0
        while events[index].type != self._EVENT_END:
            if events[index].type == self._EVENT_PHONEME:
                name = bytes(events[index].id.string).decode("utf-8", "ignore")
                self._events.append((events[index].sample, name))
            index += 1
        return 0

    def speak(self, voice: str, text: str, rng: random.Random) -> Utterance | None:
        """`voice` is a language with a variant (en-us+m3); None when there is no such voice."""
        self._chunks.clear()
        self._events.clear()
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            return None
        for parameter, low, high in (
            (self._RATE, 140, 240),
            (self._PITCH, 25, 75),
            (self._RANGE, 30, 80),
        ):
            self._library.espeak_SetParameter(parameter, rng.randint(low, high), 0)
        encoded = text.encode()
        self._library.espeak_Synth(
            encoded, len(encoded) + 1, 0, self._CHARS_AUTO, 0, self._CHARS_AUTO, None, None
        )
        self._library.espeak_Synchronize()
        if not self._chunks:
            return None
        samples = np.concatenate(self._chunks).astype(np.float64) / 32768.0
        segments = _closures_before_bursts(samples, self._rate, self._segments(len(samples)))
        return tidy(Utterance(to_sample_rate(samples, self._rate), segments))

    def _segments(self, total: int) -> list[Segment]:
        starts = [sample / self._rate for sample, _ in self._events] + [total / self._rate]
        segments = [Segment(SILENCE, 0.0, starts[0])] if starts[0] > 0.02 else []
        for (_, name), start, end in zip(self._events, starts, starts[1:], strict=False):
            if end - start < 0.004:
                continue
            silent = not name or name.startswith("_")
            segments += [Segment(SILENCE, start, end)] if silent else from_ipa(name, start, end)
        return segments


@lru_cache(maxsize=1)
def espeak() -> Espeak:
    """The process's one Espeak."""
    return Espeak()


_STOPS = frozenset(PHONE_INDEX[p] for p in ("p", "b", "t", "d", "k", "g", "ch", "jh"))


def _closures_before_bursts(
    samples: npt.NDArray[np.float64], rate: int, segments: list[Segment]
) -> list[Segment]:
    """espeak-ng marks a stop at its burst: the quiet closure before it belongs to the stop too."""
    hop_s, longest_s, quiet = 0.005, 0.075, 0.12
    hop = int(hop_s * rate)
    frames = samples[: len(samples) // hop * hop].reshape(-1, hop)
    energy = np.sqrt(np.mean(np.square(frames), axis=1) + 1e-12)
    result: list[Segment] = []
    for segment in segments:
        if segment.phone in _STOPS and result:
            before = result[-1]
            burst = min(int(segment.start / hop_s), len(energy))
            reference = max(float(np.max(energy[max(0, burst - 40) : burst + 1], initial=0)), 1e-4)
            first = burst
            while first > max(1, burst - 14) and energy[first - 1] < quiet * reference:
                first -= 1
            start = min(segment.start, max(first * hop_s, before.start + 0.02))
            if 0 < segment.start - start < longest_s:
                result[-1] = Segment(before.phone, before.start, start)
                segment = Segment(segment.phone, start, segment.end)
        result.append(segment)
    return result


def festival(voice: str, texts: list[str]) -> list[Utterance]:
    """English voices of festival (ARPAbet phone names); one process speaks all `texts`."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "speak.scm"
        lines = [f"({voice})"]
        for index, text in enumerate(texts):
            plain = text.replace('"', "").replace("\\", "")
            lines.append(
                f'(set! u (utt.synth (Utterance Text "{plain}")))'
                f'(utt.save.wave u "{folder}/{index}.wav")(format t "UTTERANCE {index}\\n")'
                '(mapcar (lambda (s) (format t "SEGMENT %s %f\\n" (item.name s)'
                ' (item.feat s "end"))) (utt.relation.items u \'Segment))'
            )
        script.write_text("\n".join(lines), encoding="utf-8")
        done = subprocess.run(
            ["festival", "-b", str(script)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_FESTIVAL_TIMEOUT_S,
            check=True,
        )
        found: list[Utterance] = []
        for index, segments in _festival_segments(done.stdout).items():
            utterance = tidy(Utterance(read_wav(Path(folder) / f"{index}.wav"), segments))
            if utterance is not None:
                found.append(utterance)
    return found


def _festival_segments(listing: str) -> dict[int, list[Segment]]:
    found: dict[int, list[Segment]] = {}
    current, at = -1, 0.0
    for line in listing.splitlines():
        words = line.split()
        if words[:1] == ["UTTERANCE"]:
            current, at = int(words[1]), 0.0
            found[current] = []
        elif words[:1] == ["SEGMENT"]:
            found[current] += from_arpabet(words[1], at, float(words[2]))
            at = float(words[2])
    return found
