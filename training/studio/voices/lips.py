"""Lips from phones: dominance-blended targets with hard envelopes where lips must meet.

The scheme is that of Cohen and Massaro 1993 (every phone pulls each articulator towards its target
with a strength that falls off around the phone), with raised-cosine envelopes for p, b, m and f, v.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from studio.voices.phones import BILABIALS, LABIODENTALS, PHONES, SILENCE, VOWELS, Segment

Array = npt.NDArray[np.float64]

LABEL_RATE_HZ = 100

# Outputs, 0..1. The last two are the envelopes of bilabial and labiodental closure.
LIPS = (
    "jaw funnel pucker stretch spread lower_down upper_up roll_lower roll_upper press "
    "shrug_lower tongue jaw_forward close bilabial labiodental"
).split()
LIP = {name: index for index, name in enumerate(LIPS)}

# What phones pull on, and which of six articulators each belongs to.
_BLENDED = ("jaw funnel pucker stretch spread lower_down upper_up tongue jaw_forward").split()
_JAW, _ROUND, _SPREAD, _LIPS, _TONGUE, _FORWARD = range(6)
_ARTICULATOR = (_JAW, _ROUND, _ROUND, _SPREAD, _SPREAD, _LIPS, _LIPS, _TONGUE, _FORWARD)

_SIBILANT = (0.05, 0, 0, 0.16, 0.06, 0.28, 0.12)
_POSTALVEOLAR = (0.07, 0.43, 0.15, 0, 0, 0.18, 0.12, 0, 0.15)
_VELAR = (0.15, 0, 0, 0.02, 0, 0.18, 0.06)
_TARGETS: dict[str, tuple[float, ...]] = {
    "iy": (0.15, 0, 0, 0.20, 0.25, 0.28, 0.12), "ih": (0.19, 0, 0, 0.12, 0.12, 0.25, 0.10),
    "eh": (0.30, 0, 0, 0.12, 0.10, 0.30, 0.12), "ae": (0.42, 0, 0, 0.16, 0.12, 0.38, 0.15),
    "aa": (0.55, 0.05, 0, 0, 0, 0.38, 0.12), "ah": (0.36, 0, 0, 0.02, 0.02, 0.28, 0.08),
    "ax": (0.20, 0.03, 0.02, 0, 0, 0.20, 0.06), "ao": (0.45, 0.30, 0.15, 0, 0, 0.30, 0.10),
    "ow": (0.30, 0.35, 0.35, 0, 0, 0.22, 0.06), "uh": (0.20, 0.25, 0.25, 0, 0, 0.18, 0.05),
    "uw": (0.13, 0.30, 0.60, 0, 0, 0.12, 0.03), "er": (0.20, 0.22, 0.12, 0, 0, 0.25, 0.10),
    "yy": (0.12, 0.28, 0.55, 0, 0, 0.15, 0.05), "oe": (0.25, 0.33, 0.35, 0, 0, 0.20, 0.05),
    "p": (0.06,), "b": (0.06,), "m": (0.06,),
    "f": (0.07, 0, 0, 0, 0, 0, 0.14), "v": (0.07, 0, 0, 0, 0, 0, 0.14),
    "th": (0.14, 0, 0, 0.02, 0, 0.22, 0.06, 0.30), "dh": (0.14, 0, 0, 0.02, 0, 0.22, 0.06, 0.25),
    "t": (0.09, 0, 0, 0.05, 0.03, 0.20, 0.08), "d": (0.10, 0, 0, 0.05, 0.03, 0.20, 0.08),
    "n": (0.11, 0, 0, 0.04, 0.03, 0.20, 0.07), "s": _SIBILANT, "z": _SIBILANT,
    "sh": _POSTALVEOLAR, "zh": _POSTALVEOLAR, "ch": _POSTALVEOLAR, "jh": _POSTALVEOLAR,
    "k": _VELAR, "g": _VELAR, "ng": _VELAR, "l": (0.18, 0, 0, 0.02, 0, 0.22, 0.08, 0.06),
    "r": (0.13, 0.28, 0.20, 0, 0, 0.18, 0.06), "w": (0.07, 0.25, 0.72, 0, 0, 0.06, 0.02),
    "y": (0.13, 0, 0, 0.18, 0.20, 0.24, 0.10), "hh": (0.20, 0, 0, 0, 0, 0.20, 0.06),
    "x": (0.20, 0, 0, 0, 0, 0.20, 0.06), "sil": (),
}  # fmt: skip

_ROUNDED_FROM = 0.15
_DOMINANCE: dict[str, tuple[float, ...]] = {
    "sil": (0.9, 0.8, 0.8, 0.9, 1, 1),
    "p b m": (0.6, 0.05, 0.1, 0.5, 0.6, 0.2),
    "f v": (0.7, 0.15, 0.3, 0.9, 0.6, 0.3),
    "s z": (1.1, 0.25, 0.8, 0.9, 1, 0.5),
    "sh zh ch jh": (1.0, 1.0, 0.6, 0.8, 1, 1),
    "w": (0.9, 1.3, 0.8, 0.9, 0.5, 0.3),
    "r": (0.6, 0.8, 0.5, 0.6, 0.5, 0.3),
    "th dh": (0.7, 0.2, 0.3, 0.8, 1.2, 0.3),
    "t d n l": (0.5, 0.12, 0.25, 0.5, 0.8, 0.3),
    "y": (0.7, 0.4, 0.8, 0.7, 0.5, 0.3),
    "hh": (0.05, 0.02, 0.05, 0.05, 0.2, 0.1),
    "k g ng x": (0.35, 0.08, 0.15, 0.35, 0.5, 0.2),
}
# Seconds from the core of a phone to where its pull has fallen to 1/e, per articulator.
_ANTICIPATION_S = (0.075, 0.13, 0.09, 0.06, 0.05, 0.07)
_CARRY_OVER_S = (0.065, 0.09, 0.07, 0.055, 0.05, 0.07)


def _dominance_table() -> Array:
    by_phone = {p: row for names, row in _DOMINANCE.items() for p in names.split()}
    rows = []
    for phone in PHONES:
        if phone in VOWELS:
            target = _TARGETS[phone]
            rounding = 1.0 if target[1] + target[2] > _ROUNDED_FROM else 0.45
            rows.append((1.0, rounding, 0.8, 0.9, 0.5, 0.3))
        else:
            rows.append(by_phone[phone])
    return np.array(rows)[:, list(_ARTICULATOR)]


def _target_table() -> Array:
    table = np.zeros((len(PHONES), len(_BLENDED)))
    for index, phone in enumerate(PHONES):
        table[index, : len(_TARGETS[phone])] = _TARGETS[phone]
    return table


_PULL = _dominance_table()
_TARGET = _target_table()
_BEFORE = np.array([_ANTICIPATION_S[a] for a in _ARTICULATOR])
_AFTER = np.array([_CARRY_OVER_S[a] for a in _ARTICULATOR])
_REACH_BEFORE_S, _REACH_AFTER_S = 0.4, 0.35


def _raised_cosine(x: Array) -> Array:
    return 0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0, 1))


def _core(segment: Segment) -> tuple[float, float, float]:
    """Where the phone holds its target (start, end), and how strongly."""
    length = segment.end - segment.start
    if segment.phone != SILENCE:
        return segment.start + 0.3 * length, segment.start + 0.7 * length, 1.0
    lead, tail = min(0.12, 0.45 * length), min(0.10, 0.45 * length)
    return segment.start + lead, segment.end - tail, 1.0 if length >= 0.12 else 0.35


def _spoken_target(segment: Segment, loudness: Array) -> Array:
    """Vowels open with loudness and shrink when they are short."""
    target = _TARGET[segment.phone]
    if PHONES[segment.phone] not in VOWELS:
        return target
    middle = (segment.start + segment.end) / 2 * LABEL_RATE_HZ
    loud = float(np.interp(middle, np.arange(len(loudness)), loudness))
    gain = np.ones(len(_BLENDED))
    gain[0] = loud
    gain[1:5] = 0.6 + 0.4 * loud
    gain[5:7] = 0.5 + 0.5 * loud
    return target * gain * min(1.0, 0.6 + 0.4 * (segment.end - segment.start) / 0.08)


def _closure(segment: Segment, trim: tuple[float, float], least_s: float) -> tuple[float, float]:
    length = segment.end - segment.start
    start, end = segment.start + trim[0] * length, segment.end - trim[1] * length
    if end - start < least_s:
        middle = (start + end) / 2
        start, end = middle - least_s / 2, middle + least_s / 2
    return start, end


def _add_envelope(
    envelope: Array, times: Array, span: tuple[float, float], attack: float, release: float
) -> None:
    first = max(0, int((span[0] - 0.1) * LABEL_RATE_HZ))
    last = min(len(times), int((span[1] + 0.1) * LABEL_RATE_HZ) + 2)
    at = times[first:last]
    rise = _raised_cosine((at - (span[0] - attack)) / attack)
    fall = _raised_cosine(((span[1] + release) - at) / release)
    envelope[first:last] = np.maximum(envelope[first:last], np.minimum(rise, fall))


def lips_from_phones(segments: list[Segment], seconds: float, loudness: Array) -> Array:
    """Curves [n, 16] at 100 Hz. `loudness` is a gain per label, about 1 for median speech."""
    count = int(np.ceil(seconds * LABEL_RATE_HZ)) + 1
    times = np.arange(count) / LABEL_RATE_HZ
    weighted = np.zeros((count, len(_BLENDED)))
    weights = np.full((count, len(_BLENDED)), 1e-3)
    bilabial, labiodental = np.zeros(count), np.zeros(count)
    for segment in segments:
        if segment.end <= segment.start:
            continue
        start, end, strength = _core(segment)
        first = max(0, int((start - _REACH_BEFORE_S) * LABEL_RATE_HZ))
        last = min(count, int((end + _REACH_AFTER_S) * LABEL_RATE_HZ) + 2)
        at = times[first:last, None]
        late = np.where(at > end, (at - end) / _AFTER, 0)
        distance = np.where(at < start, (start - at) / _BEFORE, late)
        pull = strength * _PULL[segment.phone] * np.exp(-(distance**1.3))
        weighted[first:last] += pull * _spoken_target(segment, loudness)
        weights[first:last] += pull
        phone = PHONES[segment.phone]
        if phone in BILABIALS:
            trim = (0.1, 0.1) if phone == "m" else (0.0, 0.28)
            _add_envelope(bilabial, times, _closure(segment, trim, 0.056), 0.055, 0.05)
        elif phone in LABIODENTALS:
            span = _closure(segment, (0.1, 0.15), 0.05)
            _add_envelope(labiodental, times, span, 0.06, 0.05)
    return _with_closures(weighted / weights, bilabial, labiodental)


def _with_closures(blended: Array, bilabial: Array, labiodental: Array) -> Array:
    lips = np.zeros((len(blended), len(LIPS)))
    for index, name in enumerate(_BLENDED):
        lips[:, LIP[name]] = blended[:, index]
    labiodental = labiodental * (1 - bilabial)
    open_lips = (1 - bilabial) * (1 - labiodental)
    jaw = lips[:, LIP["jaw"]] * (1 - 0.35 * bilabial) * (1 - 0.6 * labiodental)
    jaw = jaw + 0.05 * labiodental
    upper = lips[:, LIP["upper_up"]]
    lips[:, LIP["jaw"]] = jaw
    lips[:, LIP["close"]] = bilabial * jaw + 0.35 * labiodental * jaw
    lips[:, LIP["lower_down"]] *= (1 - bilabial) * (1 - 0.95 * labiodental)
    lips[:, LIP["upper_up"]] = upper * (1 - bilabial) * (1 - 0.5 * labiodental) + 0.13 * labiodental
    lips[:, LIP["press"]] = 0.38 * bilabial
    lips[:, LIP["roll_lower"]] = 0.14 * bilabial + 0.45 * labiodental
    lips[:, LIP["roll_upper"]] = 0.14 * bilabial
    lips[:, LIP["shrug_lower"]] = 0.08 * bilabial + 0.10 * labiodental
    lips[:, LIP["tongue"]] *= open_lips
    lips[:, LIP["spread"]] *= 1 - 0.5 * bilabial
    lips[:, LIP["bilabial"]] = bilabial
    lips[:, LIP["labiodental"]] = labiodental
    return lips
