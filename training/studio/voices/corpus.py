"""The speech corpus: sessions of one voice, 20 to 40 s long, and the labels that belong to them.

A corpus is one .npz file: the sessions' samples end to end, phones with their times, voices. A plan
of voices, its seed and its length decide every byte on one machine; sessions are made in parallel.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studio.voices import synthesis
from studio.voices.lips import LABEL_RATE_HZ, LIPS, lips_from_phones
from studio.voices.performance import smooth
from studio.voices.phones import SILENCE, Segment
from studio.voices.synthesis import SAMPLE_RATE_HZ, Samples, Utterance
from studio.voices.texts import Sentences

_ESPEAK_VARIANTS = (
    "f1 f2 f4 f5 m1 m2 m3 m5 m6 m7 m8 croak klatt klatt3 Alex Alicia Andrea Andy Denis Diogo "
    "Hugo Jacky Lee Marco Mario Michael Mike Storm adam anika antonio aunty belinda benjamin boris "
    "caleb david ed edward grandpa john linda marcelo michel miguel norbert pablo paul pedro "
    "quincy rob robert sandro shelby steph travis victor zac"
).split()
_HELD_VARIANTS = ("f3", "m4", "klatt2", "grandma", "max", "Gene")
_SESSION_S = (20.0, 40.0)
_PROSODY = 4  # speech, loudness, relative pitch, voicing


@dataclass(frozen=True)
class VoiceGroup:
    """Voices of one synthesiser, the language they read and their share of the corpus."""

    engine: str
    voices: tuple[str, ...]
    share: float
    script: str = "english"
    held_out: bool = False


# Only voices whose licence lets anyone use what they say; MODEL_CARD.md lists the licences.
PLAN = (
    VoiceGroup("flite", ("slt",), 0.2),
    VoiceGroup("flite", ("rms",), 0.2),
    VoiceGroup("flite", ("awb",), 0.2),
    VoiceGroup("flite", ("kal16",), 0.06),
    VoiceGroup("festival", ("voice_cmu_us_slt_arctic_hts",), 0.06),
    VoiceGroup("festival", ("voice_kal_diphone",), 0.04),
    VoiceGroup("espeak", tuple(f"en-us+{v}" for v in _ESPEAK_VARIANTS), 0.1),
    VoiceGroup("espeak", tuple(f"en-gb+{v}" for v in _ESPEAK_VARIANTS[::2]), 0.04),
    VoiceGroup("espeak", tuple(f"de+{v}" for v in _ESPEAK_VARIANTS[::3]), 0.02, "latin"),
    VoiceGroup("espeak", tuple(f"es+{v}" for v in _ESPEAK_VARIANTS[1::3]), 0.02, "latin"),
    VoiceGroup("espeak", tuple(f"fr+{v}" for v in _ESPEAK_VARIANTS[2::3]), 0.02, "latin"),
    VoiceGroup("espeak", tuple(f"ru+{v}" for v in _ESPEAK_VARIANTS[::4]), 0.02, "cyrillic"),
    VoiceGroup("espeak", tuple(f"en-us+{v}" for v in _HELD_VARIANTS), 0.02, held_out=True),
)


@dataclass(frozen=True)
class Session:
    """Speech of one voice with pauses."""

    voice: str
    held_out: bool
    samples: Samples
    segments: list[Segment]

    @property
    def seconds(self) -> float:
        return len(self.samples) / SAMPLE_RATE_HZ


@dataclass(frozen=True)
class Labels:
    """What the encoder learns, at 100 Hz: lips [n, 16], phones [n], prosody [n, 4]."""

    lips: npt.NDArray[np.float32]
    phones: npt.NDArray[np.int64]
    prosody: npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Job:
    group: VoiceGroup
    voice: str
    seed: int


def _speak(job: _Job, rng: random.Random, sentences: Sentences) -> list[Utterance]:
    def text() -> str:
        script = job.group.script
        if script == "english":
            return sentences.english()
        return sentences.made_up(script)

    if job.group.engine == "festival":
        return synthesis.festival(job.voice, [text() for _ in range(12)])
    speak = synthesis.flite if job.group.engine == "flite" else synthesis.espeak().speak
    found = speak(job.voice, text(), rng)
    return [] if found is None else [found]


def make_session(job: _Job) -> Session | None:
    """None when the voice is not there."""
    rng = random.Random(job.seed)
    sentences = Sentences(rng)
    wanted = rng.uniform(*_SESSION_S)
    at = rng.uniform(0.1, 0.9)
    parts: list[Samples] = [np.zeros(int(at * SAMPLE_RATE_HZ), np.float32)]
    segments = [Segment(SILENCE, 0.0, at)]
    while at < wanted:
        spoken = _speak(job, rng, sentences)
        if not spoken:
            return None
        for utterance in spoken:
            gap = abs(rng.gauss(0, 0.5)) if rng.random() < 0.8 else rng.uniform(1, 2.6)
            start = sum(map(len, parts)) / SAMPLE_RATE_HZ
            parts += [utterance.samples, np.zeros(int(gap * SAMPLE_RATE_HZ), np.float32)]
            segments += [s.shifted(start) for s in utterance.segments]
            at = sum(map(len, parts)) / SAMPLE_RATE_HZ
            segments.append(Segment(SILENCE, segments[-1].end, at))
            if at >= wanted:
                break
    samples = np.clip(np.concatenate(parts), -0.99, 0.99)
    return Session(job.voice, job.group.held_out, samples, segments)


ENGINES = ("flite", "espeak", "festival")


def generate(
    minutes: float,
    seed: int,
    workers: int,
    held_minutes: float = 0.0,
    engines: Sequence[str] = ENGINES,
) -> list[Session]:
    """Sessions of every voice group of PLAN, `minutes` in all (plus the held-out voices).

    Without some of `engines` the corpus is shorter by their share.
    """
    rng = random.Random(seed)
    mean_s = sum(_SESSION_S) / 2
    jobs: list[_Job] = []
    for group in (g for g in PLAN if g.engine in engines):
        seconds = 60 * (max(held_minutes, 0.0) if group.held_out else minutes * group.share)
        for _ in range(max(1, round(seconds / mean_s))):
            jobs.append(_Job(group, rng.choice(group.voices), rng.randrange(1 << 30)))
    if workers <= 1:
        made: Iterable[Session | None] = map(make_session, jobs)
        return [session for session in made if session is not None]
    with ProcessPoolExecutor(workers) as pool:
        return [s for s in pool.map(make_session, jobs, chunksize=1) if s is not None]


def save(sessions: list[Session], path: Path) -> None:
    """Writes a corpus; the samples as 8-bit mu-law."""
    counts = np.array([len(s.samples) for s in sessions])
    phone_counts = np.array([len(s.segments) for s in sessions])
    everything = [segment for s in sessions for segment in s.segments]
    with path.open("wb") as stream:
        np.savez(
            stream,
            samples=np.concatenate([to_mu_law(s.samples) for s in sessions]),
            counts=counts,
            phone_counts=phone_counts,
            phones=np.array([s.phone for s in everything], np.uint8),
            ends=np.array([s.end for s in everything], np.float32),
            voices=np.array([s.voice for s in sessions]),
            held_out=np.array([s.held_out for s in sessions]),
        )


def load(path: Path) -> list[Session]:
    with np.load(path, allow_pickle=False) as stored:
        samples, phones, ends = stored["samples"], stored["phones"], stored["ends"]
        counts, phone_counts = stored["counts"], stored["phone_counts"]
        voices, held_out = stored["voices"], stored["held_out"]
    sessions: list[Session] = []
    at, phone_at = 0, 0
    for index, (count, phone_count) in enumerate(zip(counts, phone_counts, strict=True)):
        segments: list[Segment] = []
        start = 0.0
        for phone, end in zip(
            phones[phone_at : phone_at + phone_count],
            ends[phone_at : phone_at + phone_count],
            strict=True,
        ):
            segments.append(Segment(int(phone), start, float(end)))
            start = float(end)
        audio = from_mu_law(samples[at : at + count])
        sessions.append(Session(str(voices[index]), bool(held_out[index]), audio, segments))
        at, phone_at = at + count, phone_at + phone_count
    return sessions


_MU = 255.0


def to_mu_law(samples: Samples) -> npt.NDArray[np.uint8]:
    compressed = np.sign(samples) * np.log1p(_MU * np.abs(samples)) / np.log1p(_MU)
    return np.round(np.clip(compressed, -1, 1) * 127 + 128).astype(np.uint8)


def from_mu_law(coded: npt.NDArray[np.uint8]) -> Samples:
    compressed = (coded.astype(np.float32) - 128) / 127
    restored = np.sign(compressed) * np.expm1(np.abs(compressed) * np.log1p(_MU)) / _MU
    return np.asarray(restored, dtype=np.float32)


def labels_of(session: Session) -> Labels:
    """Labels from the phones' times and the sound's loudness and pitch."""
    count = int(session.seconds * LABEL_RATE_HZ) + 2
    phones = np.zeros(count, np.int64)
    for segment in session.segments:
        first = round(segment.start * LABEL_RATE_HZ)
        phones[first : round(segment.end * LABEL_RATE_HZ)] = segment.phone
    speech = (phones != SILENCE).astype(np.float64)
    level = _level_db(session.samples, count)
    usual = float(np.median(level[speech > 0])) if speech.any() else 0.0
    gain = np.clip(1 + (level - usual) / 20, 0.6, 1.3)
    lips = lips_from_phones(session.segments, session.seconds, gain)
    lips = np.pad(lips, ((0, max(0, count - len(lips))), (0, 0)))[:count]
    loudness = np.clip(1 + (level - usual) / 20, 0, 1.6) * speech
    pitch, voicing = _pitch(session.samples, speech, level > usual - 18)
    prosody = np.stack([speech, loudness, pitch, voicing], axis=1)
    assert prosody.shape == (count, _PROSODY) and lips.shape == (count, len(LIPS))
    return Labels(lips.astype(np.float32), phones, prosody.astype(np.float32))


def _level_db(samples: Samples, count: int) -> npt.NDArray[np.float64]:
    hop, window = SAMPLE_RATE_HZ // LABEL_RATE_HZ, 400
    power = np.convolve(np.square(samples.astype(np.float64)), np.ones(window) / window, "same")
    power = np.pad(power[hop // 2 :: hop], (0, count), mode="edge")[:count]
    return smooth(20 * np.log10(np.sqrt(np.maximum(power, 1e-10)) + 1e-6), 9)


def _pitch(
    samples: Samples, speech: npt.NDArray[np.float64], loud: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Pitch in units of four semitones around the session's median, and voicing 0..1."""
    hop, window, shortest, longest = 320, 800, 40, 260
    count = len(speech)
    hann = np.hanning(window)
    frames = np.lib.stride_tricks.sliding_window_view(samples, window)[::hop] * hann
    correlation = np.fft.irfft(np.abs(np.fft.rfft(frames, 2048)) ** 2)[:, :400]
    of_window = np.fft.irfft(np.abs(np.fft.rfft(hann, 2048)) ** 2)[:400]
    correlation = correlation / np.maximum(correlation[:, :1], 1e-9) / (of_window / of_window[0])
    inside = correlation[:, shortest:longest]
    hertz = SAMPLE_RATE_HZ / (inside.argmax(axis=1) + shortest)
    at = (np.arange(len(hertz)) * hop + window / 2) / (SAMPLE_RATE_HZ / LABEL_RATE_HZ)
    label = np.arange(count)
    voiced = (inside.max(axis=1) > 0.55) & (np.interp(at, label, speech * loud) > 0.5)
    usual = float(np.median(hertz[voiced])) if voiced.sum() > 10 else 120.0
    relative = np.where(voiced, np.clip(12 * np.log2(hertz / usual) / 4, -2, 2), 0)
    return np.interp(label, at, relative), np.interp(label, at, voiced.astype(float))
