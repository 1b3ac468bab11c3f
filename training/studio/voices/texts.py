"""Sentences to speak: templates over word lists, and made-up words with many lip consonants."""

from __future__ import annotations

import random
from collections.abc import Callable

_NOUNS = (
    "morning evening teacher farmer people baby book paper map number office moment family problem "
    "company member river village summer winter bottle pepper puppy bubble purple apple button "
    "movie memory memo phone voice fish fever valley five elevator wave love coffee leaf chef "
    "garden shadow bridge music judge measure vision treasure thing truth father mother weather "
    "brother path tooth water window wind wool queen world year youth onion house hotel hand hero "
    "lion ladder letter table road rabbit carrot mirror area king song ring finger singer school "
    "skill sky box ox axe tax game goat bag egg dog doctor door day deal dinner stone star street "
    "story sister zoo zebra zone size prize cheese chair church watch picture nature joy toy boy "
    "oil coin cow town cloud sound eye time night light face space name moon spoon food shoe boot "
    "foot wood cup sun money blood bird girl word nurse work minister budget parliament report "
    "economy market airport platform computer passenger committee government campaign victory "
    "football temperature pressure rainfall snow storm thunder earthquake volcano museum library "
    "university laboratory experiment engine vehicle factory harvest mountain island harbour"
).split()
_VERBS = (
    "bring make move leave put open keep follow measure watch need find believe provide imagine "
    "describe explain prefer improve promise remember build push pull buy sell wash choose join "
    "enjoy use refuse allow show throw grow fly try cry catch teach reach touch drive save serve "
    "fix mix ask answer look cook walk talk think thank smooth breathe publish approve confirm "
    "postpone compare combine examine introduce support visit repair announce deliver observe"
).split()
_ADJECTIVES = (
    "big small happy simple beautiful marvelous perfect previous public purple brown blue warm "
    "wonderful vivid funny favorite awful smooth soft strong quick quiet yellow young huge hot "
    "heavy lovely light long royal real round green good great loud proud sour powerful busy "
    "pretty empty modern common famous foolish cheap rich sharp fresh thick thin important "
    "possible probable temporary permanent remarkable comfortable independent international"
).split()
_ADVERBIALS = (
    "maybe;probably;however;meanwhile;often;sometimes;perhaps;suddenly;of course;above all;"
    "before breakfast;after a moment;by the way;from time to time;in my opinion;"
    "five minutes ago;in the evening;for the first time;according to the report"
).split(";")
_NAMES = (
    "Bob Mary Peter Pamela Fiona Victor William Walter George Charlotte Yvonne Hugo Robert Abby "
    "Emma Oliver Wendy Phoebe Matthew Judy"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = (
    "January February March April May June July August September October November December"
).split()

_SYLLABLES = {
    "latin": ("m p b v f n t d s k g r l j h".split(), "a e i o u".split()),
    "cyrillic": ("м п б в ф н т д с з ш ж к г р л х ч".split(), "а е и о у ы я ю".split()),
}


class Sentences:
    """An endless, seeded source of English sentences."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def _pick(self, words: list[str]) -> str:
        return self._rng.choice(words)

    def english(self) -> str:
        noun, verb = lambda: self._pick(_NOUNS), lambda: self._pick(_VERBS)
        adjective, name = lambda: self._pick(_ADJECTIVES), lambda: self._pick(_NAMES)
        rng = self._rng
        templates: list[Callable[[], str]] = [
            lambda: f"The {adjective()} {noun()} will {verb()} my {noun()} before the {noun()}.",
            lambda: f"{name()} and {name()} {verb()} the {noun()}, but {name()} would not.",
            lambda: f"Could you please {verb()} the {adjective()} {noun()} for me?",
            lambda: f"Why would anybody {verb()} {rng.randint(2, 9999)} {adjective()} {noun()}s?",
            lambda: f"I am happy to {verb()} you, {name()}, because the {noun()} is {adjective()}.",
            lambda: f"Wow, what a {adjective()} {noun()}! I really {verb()} it.",
            lambda: (
                f"On {self._pick(_DAYS)}, {self._pick(_MONTHS)} {rng.randint(1, 28)}, "
                f"we {verb()} the {noun()} of {name()}."
            ),
            lambda: f"My number is {', '.join(str(rng.randint(0, 9)) for _ in range(7))}.",
            lambda: (
                f"{self._pick(_ADVERBIALS).capitalize()}, {name()} {verb()}s above the {noun()}; "
                f"the {noun()} of the {noun()} {verb()}s five {adjective()} {noun()}s."
            ),
            lambda: f"No, {name()}. We must {verb()} more {noun()}s, {noun()}s and {noun()}s.",
            lambda: f"If the {noun()} is {adjective()}, people from the {noun()} {verb()} it.",
            lambda: f"Yes! Yes, of course. Hmm, {name()}, maybe we {verb()} the {noun()}.",
            lambda: " ".join(self._pick(_NOUNS + _ADJECTIVES + _VERBS) for _ in range(7)) + ".",
        ]
        return rng.choice(templates)()

    def made_up(self, script: str) -> str:
        """Words of two to four random syllables in `script` (latin or cyrillic)."""
        consonants, vowels = _SYLLABLES[script]
        words = [
            "".join(
                self._pick(consonants) + self._pick(vowels) for _ in range(self._rng.randint(2, 4))
            )
            for _ in range(self._rng.randint(4, 9))
        ]
        return " ".join(words) + self._pick([".", ".", "?"])
