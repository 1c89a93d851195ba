"""Number words and their values, one table for each language. Data only.

Who reads them says which of them are numbers to it: a lone "one" is often a pronoun, "second" a unit of time."""

from collections.abc import Mapping


def _counted(words: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(words.split())}


TENS: Mapping[str, int] = _counted("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
CARDINALS: Mapping[str, int] = {
    **_counted("zero one two three four five six seven eight nine ten eleven twelve", 0),
    **_counted("thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 13),
    **TENS,
}
"""English: zero to twenty, and the tens below a hundred."""
ORDINALS: Mapping[str, int] = {
    **_counted("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth", 1),
    **_counted("thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth", 13),
    **{f"{word[:-1]}ieth": value for word, value in TENS.items()},
}
"""English: first to twentieth, and the tens below the hundredth."""
MULTIPLES: Mapping[str, int] = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
"""English words that multiply what stands before them."""

GERMAN: Mapping[str, int] = _counted("zwei drei vier fünf sechs sieben acht neun zehn elf zwölf", 2)
SPANISH: Mapping[str, int] = _counted("dos tres cuatro cinco seis siete ocho nueve diez once doce", 2)
FRENCH: Mapping[str, int] = _counted("deux trois quatre cinq six sept huit neuf dix onze douze", 2)
"""Two to twelve: "one" is the article in these languages."""

CHINESE_DIGITS: Mapping[str, int] = {**_counted("一 二 三 四 五 六 七 八 九", 1), "两": 2}
CHINESE_NUMERALS = frozenset("〇零十百千万亿") | CHINESE_DIGITS.keys()
"""Every sign of a Chinese number."""
