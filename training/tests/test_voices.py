"""Voices: phones map to one set, synthesisers report true times, lips close where they must."""

from __future__ import annotations

import itertools
import random
import shutil

import numpy as np
import pytest

from studio.voices import synthesis
from studio.voices.lips import LABEL_RATE_HZ, LIP, lips_from_phones
from studio.voices.phones import PHONE_INDEX, SILENCE, Segment, from_arpabet, from_ipa
from studio.voices.texts import Sentences

TEXT = "Bob may have five purple maps."


def test_diphthongs_and_affricates_cover_their_event() -> None:
    two = from_arpabet("ay1", 1.0, 2.0)
    assert [s.phone for s in two] == [PHONE_INDEX["aa"], PHONE_INDEX["ih"]]
    assert (two[0].start, two[0].end, two[1].end) == (1.0, two[1].start, pytest.approx(2.0))
    assert [s.phone for s in from_ipa("t͡ʃɑ", 0, 1)] == [PHONE_INDEX["ch"], PHONE_INDEX["aa"]]
    assert from_arpabet("pau", 0, 1)[0].phone == SILENCE


def test_sentences_repeat_with_the_seed() -> None:
    first, second = (Sentences(random.Random(5)) for _ in range(2))
    lines = [first.english() for _ in range(30)]
    assert lines == [second.english() for _ in range(30)]
    assert len(set(lines)) > 25


def words(*timed: tuple[str, float]) -> list[Segment]:
    at, segments = 0.0, []
    for name, length in timed:
        segments.append(Segment(PHONE_INDEX[name], at, at + length))
        at += length
    return segments


def test_lips_meet_on_bilabials_and_rest_in_silence() -> None:
    phones = words(("sil", 0.5), ("aa", 0.2), ("m", 0.1), ("aa", 0.2), ("f", 0.1), ("sil", 0.6))
    lips = lips_from_phones(phones, 1.7, np.ones(200))
    aperture = lips[:, LIP["jaw"]] - lips[:, LIP["close"]]

    def at(seconds: float) -> int:
        return int(seconds * LABEL_RATE_HZ)

    assert lips[at(0.75), LIP["bilabial"]] > 0.99
    assert aperture[at(0.75)] < 0.01
    assert aperture[at(0.6)] > 0.3
    assert lips[at(1.05), LIP["labiodental"]] > 0.9
    assert aperture[at(0.1)] < 0.02
    assert aperture[at(1.6)] < 0.02
    assert lips.min() >= 0
    assert lips.max() <= 1


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
@pytest.mark.parametrize("voice", ["slt", "rms"])
def test_flite_phones_fit_its_sound(voice: str) -> None:
    check_times(synthesis.flite(voice, TEXT, random.Random(1)))


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_espeak_phones_fit_its_sound() -> None:
    check_times(synthesis.espeak().speak("en-us+m3", TEXT, random.Random(1)))
    assert synthesis.espeak().speak("no-such-voice", TEXT, random.Random(1)) is None


@pytest.mark.skipif(shutil.which("festival") is None, reason="festival is not installed")
def test_festival_phones_fit_its_sound() -> None:
    found = synthesis.festival("voice_cmu_us_slt_arctic_hts", [TEXT, TEXT])
    assert len(found) == 2
    check_times(found[1])


def check_times(utterance: synthesis.Utterance | None) -> None:
    """Segments follow each other, hold the text's lip consonants, and are loud where vowels are."""
    assert utterance is not None
    segments = utterance.segments
    seconds = len(utterance.samples) / synthesis.SAMPLE_RATE_HZ
    assert segments[-1].end == pytest.approx(seconds, abs=0.15)
    for before, after in itertools.pairwise(segments):
        assert after.start == pytest.approx(before.end, abs=0.02)
    names = [s.phone for s in segments]
    assert sum(names.count(PHONE_INDEX[p]) for p in "pbm") == 7
    assert sum(names.count(PHONE_INDEX[p]) for p in "fv") == 3

    def level(wanted: set[int]) -> float:
        parts = [
            utterance.samples[int(s.start * 16000) : int(s.end * 16000)]
            for s in segments
            if s.phone in wanted
        ]
        return float(np.sqrt(np.mean(np.square(np.concatenate(parts)))))

    vowels = {PHONE_INDEX[v] for v in ("aa", "ae", "eh", "iy", "er")}
    stops = {PHONE_INDEX[p] for p in "pb"}
    assert level(vowels) > 2 * level(stops)
