"""A text as a model would read it: look-alike letters, invisible signs, spaced words, digits for letters, encodings.

Linear in the text. The readings are few and their number is fixed: nothing is gained by piling up disguises."""

import re
import unicodedata
from base64 import b64decode
from binascii import unhexlify
from codecs import decode
from html import unescape

OPENED_MAX = 3
"""An encoding inside of an encoding is opened, so often; no model reads further by itself."""
SPELT_MIN = 13
"""Letters that stand alone: as long as the longest names that people spell."""
READABLE_MIN = 0.85
"""What is decoded counts as a text when so much of it is letters and spaces; of random bytes a quarter is."""


def readings(text: str) -> list[str]:
    """The text without look-alikes and invisible signs, and then every other way in which it may make words."""
    plain = revealed(text)
    joined = _SPELT.sub(lambda match: _SEPARATOR.sub("", match.group()), plain)
    # Digits and signs for letters put back, where words have both; a 1 is an i or an l.
    letters = ("oieastbsaii", "oleastbsail") if len(_LEET_WORD.findall(plain)) >= 2 else ()
    found = dict.fromkeys([plain, joined, *(plain.translate(str.maketrans("0134578$@!|", each)) for each in letters)])
    opened = _TAGS.sub(lambda match: "\n" + "".join(chr(ord(c) - 0xE0000) for c in match.group()) + "\n", text)
    for _ in range(OPENED_MAX):
        if (opened := revealed(_opened(opened))) in found:
            break
        found[opened] = None
    return list(found)


def turned(text: str) -> list[str]:
    """The text in rot13 and from its end to its beginning: nonsense, unless that is how it was hidden."""
    plain = revealed(text)
    return [decode(plain, "rot13"), plain[::-1]]


def revealed(text: str) -> str:
    """The text in NFKC, without what takes no place, and each word in one alphabet. Revealing twice changes nothing."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", _without_invisible(text).translate(_PHRASES))
    return _WORD.sub(lambda word: _of_one_alphabet(word.group()), _without_invisible(text))


def is_spelt_out(text: str) -> bool:
    """Whether words stand in single letters with something between them, more than a name that is spelt to somebody."""
    return any(len(_LETTER.findall(match.group())) >= SPELT_MIN for match in _SPELT.finditer(text))


def _without_invisible(text: str) -> str:
    unseen = {ord(c): None for c in set(text) if unicodedata.category(c) == "Cf" or _UNSEEN.match(c)}
    return text.translate(unseen) if unseen else text


def _of_one_alphabet(word: str) -> str:
    return word.translate(_LOOK_ALIKES) if _LATIN.search(word) and not word.isascii() else word


def _opened(text: str) -> str:
    """Whatever encoded text there is, in its place."""
    text = _PERCENT.sub(lambda match: unhexlify(match[0].replace("%", "")).decode("utf-8", "replace"), unescape(text))
    text = _ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    text = _BINARY.sub(lambda match: _in_place(match, bytes(int(eight, 2) for eight in _EIGHT.findall(match[0]))), text)
    text = _HEX.sub(lambda match: _in_place(match, unhexlify(_NO_HEX.sub("", match[0]))), text)
    return _BASE64.sub(_from_base64, text)


def _from_base64(match: re.Match[str]) -> str:
    digits = match[0].rstrip("=").replace("-", "+").replace("_", "/")
    if len(digits) % 4 == 1:
        return match[0]
    return _in_place(match, b64decode(digits + "=" * (-len(digits) % 4)))


def _in_place(match: re.Match[str], data: bytes) -> str:
    """What was decoded, as sentences of its own, or the match when that is no text."""
    text = data.decode("utf-8", "replace")
    letters = sum(c.isalpha() or c == " " for c in text)
    return f"\n{text}\n" if letters >= READABLE_MIN * len(text) else match[0]


_UNSEEN = re.compile("[\u0300-\u036f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef\u034f\u2800]")
_PHRASES = str.maketrans("\ufdfa\ufdfb", "\u0635\u062c")
"""Two signs that stand for a whole phrase each, of 18 letters and of 8: nothing can be hidden in them but time."""
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")
_LOOK_ALIKES = str.maketrans(
    "аеорсухіѕјһԁԛԝвкмнтгпиАВЕКМНОРСТХІЅЈУαοερνικτυχωηΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡıօհո",
    "aeopcyxisjhdqwbkmhtrnuABEKMHOPCTXISJYaoepviktuxwnABEZHIKMNOPTYXagiohn",
)
"""Letters of Cyrillic, Greek and Armenian that look like Latin ones (Unicode Technical Standard 39, those of words)."""
_LETTER = re.compile(r"[^\W\d_]")
_SPELT = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .*_|/~+-]{1,3}[^\W\d_](?![^\W_])){3,}")
_SEPARATOR = re.compile(r"(?<! ) (?! )|[.*_|/~+-]+")
_LEET_WORD = re.compile(r"[A-Za-z][0134578$@!|](?=[A-Za-z0134578$@!|])|[0134578$@|][A-Za-z]")
_PERCENT = re.compile("(?:%[0-9A-Fa-f]{2})+")
_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
_BINARY = re.compile(r"(?<![01])[01]{8}(?:[ ,]?[01]{8}){3,}(?![01])")
_EIGHT = re.compile("[01]{8}")
_HEX = re.compile(r"(?:\b0x|(?<![0-9A-Za-z]))[0-9A-Fa-f]{2}(?:[ :,]?(?:0x)?[0-9A-Fa-f]{2}){7,}(?![0-9A-Za-z])")
_NO_HEX = re.compile("0x|[^0-9A-Fa-f]")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/_-]{12,}={0,2}")
