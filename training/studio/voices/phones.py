"""One phone set for all synthesisers, and the ways into it from ARPAbet and IPA."""

from __future__ import annotations

from dataclasses import dataclass

# Index 0 is silence; the audio encoder's phone logits are in this order.
PHONES = (
    "sil iy ih eh ae aa ah ax ao ow uh uw er yy oe "
    "p b m f v th dh t d n s z sh zh ch jh k g ng l r w y hh x"
).split()
PHONE_INDEX = {phone: index for index, phone in enumerate(PHONES)}
SILENCE = PHONE_INDEX["sil"]
VOWELS = frozenset(PHONES[1:15])
BILABIALS = frozenset("pbm")
LABIODENTALS = frozenset("fv")

_DIPHTHONGS = {
    "ay": (("aa", 0.55), ("ih", 0.45)),
    "aw": (("aa", 0.55), ("uw", 0.45)),
    "oy": (("ao", 0.55), ("ih", 0.45)),
    "ey": (("eh", 0.5), ("iy", 0.5)),
    "ow": (("ow", 0.55), ("uw", 0.45)),
}
_ARPABET_VARIANTS = {
    "axr": "er", "em": "m", "en": "n", "el": "l", "dx": "d", "nx": "n", "ix": "ih", "hv": "hh",
}  # fmt: skip

_IPA = {
    "i": "iy", "ɪ": "ih", "e": "eh", "ɛ": "eh", "æ": "ae", "a": "aa", "ɑ": "aa", "ɐ": "ah",
    "ʌ": "ah", "ə": "ax", "ᵻ": "ih", "ɨ": "ih", "ɔ": "ao", "ɒ": "ao", "o": "ow", "ʊ": "uh",
    "u": "uw", "ɜ": "er", "ɚ": "er", "ɝ": "er", "y": "yy", "ʏ": "yy", "ø": "oe", "œ": "oe",
    "ɵ": "oe", "ɤ": "ah", "ɯ": "ih", "ʉ": "uw", "p": "p", "b": "b", "m": "m", "f": "f", "v": "v",
    "β": "v", "ʋ": "v", "ɸ": "f", "θ": "th", "ð": "dh", "t": "t", "d": "d", "ʈ": "t", "ɖ": "d",
    "n": "n", "ɳ": "n", "ɲ": "n", "s": "s", "z": "z", "ʂ": "sh", "ʐ": "zh", "ʃ": "sh", "ʒ": "zh",
    "ɕ": "sh", "ʑ": "zh", "c": "k", "ɟ": "g", "k": "k", "g": "g", "ɡ": "g", "q": "k", "ŋ": "ng",
    "x": "x", "ɣ": "x", "χ": "x", "ʁ": "x", "ç": "x", "ʝ": "y", "ħ": "hh", "h": "hh", "ɦ": "hh",
    "l": "l", "ɫ": "l", "ɭ": "l", "ʎ": "l", "ɹ": "r", "ɻ": "r", "r": "d", "ɾ": "d", "ɽ": "d",
    "w": "w", "ʍ": "w", "j": "y", "ɥ": "w",
}  # fmt: skip
_IPA_AFFRICATES = {
    "tʃ": "ch", "dʒ": "jh", "tɕ": "ch", "dʑ": "jh", "tʂ": "ch", "dʐ": "jh", "ts": "s",
}  # fmt: skip
_MOST_PHONES_PER_EVENT = 3


@dataclass(frozen=True)
class Segment:
    """A phone (index into PHONES) from `start` to `end`, in seconds."""

    phone: int
    start: float
    end: float

    def shifted(self, seconds: float) -> Segment:
        return Segment(self.phone, self.start + seconds, self.end + seconds)


def from_arpabet(name: str, start: float, end: float) -> list[Segment]:
    """Segments of an ARPAbet symbol; diphthongs become two, unknown symbols are silence."""
    name = name.lower().rstrip("012")
    parts = _DIPHTHONGS.get(name)
    if parts is None:
        name = _ARPABET_VARIANTS.get(name, name)
        return [Segment(PHONE_INDEX.get(name, SILENCE), start, end)]
    segments, at = [], start
    for phone, share in parts:
        segments.append(Segment(PHONE_INDEX[phone], at, at + share * (end - start)))
        at += share * (end - start)
    return segments


def from_ipa(text: str, start: float, end: float) -> list[Segment]:
    """Segments of one synthesiser event that holds one to three IPA phones."""
    text = text.replace("͡", "")
    phones: list[str] = []
    position = 0
    while position < len(text):
        affricate = _IPA_AFFRICATES.get(text[position : position + 2])
        phone = affricate or _IPA.get(text[position])
        if phone is not None:
            phones.append(phone)
        position += 2 if affricate else 1
    phones = phones[:_MOST_PHONES_PER_EVENT]
    if not phones:
        return [Segment(SILENCE, start, end)]
    length = (end - start) / len(phones)
    return [
        Segment(PHONE_INDEX[phone], start + i * length, start + (i + 1) * length)
        for i, phone in enumerate(phones)
    ]
