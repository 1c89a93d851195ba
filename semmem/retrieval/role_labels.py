"""Labels with which text pretends that somebody else begins to speak: ``system:``, ``用户：``, ``Assistent :``.

What counts is a shape: at most LABEL_WORDS_MAX words before anything that looks like a colon. In Latin letters that is
also the shape of an ordinary note ("Budget: 500"), so there a word for a role has to be among them. In other scripts,
and where scripts are mixed within a word, no list of words would ever be whole: there the shape alone decides, and an
ordinary note reads "Бюджет - 500"."""

import re
import unicodedata

LABEL_WORDS_MAX = 3
LABEL_CHARS_MAX = 24
_WINDOW_CHARS = 48  # looked back over from a colon: a label, and what may stand around it

# The colon, its forms for other widths and directions, and what Unicode lists as confusable with it (UTS #39).
_COLON_LIKE = ":：﹕︓︰∶∷≔꞉ː˸׃܃܄։፥፦᛬᠃᠉⁚⁝⦂ꓽ"
_COLONS = re.compile(rf"[{_COLON_LIKE}](?:\s*+[{_COLON_LIKE}])*+")
_SENTENCE_ENDS = {"։": "ARMENIAN", "׃": "HEBREW", "፥": "ETHIOPIC", "፦": "ETHIOPIC"}
"""Marks that end a sentence in their own script, where they are no colon."""

_WORDS = frozenset(
    "user users human humans humano humain umano mensch ai ki ia bot chatbot chatgpt tool utente".split()
)
_PAIRS = frozenset(("nguoi dung", "tro ly", "he thong"))
_STEMS = tuple(
    "system sistem systeem jarjestelma rendszer sustav "
    "assist asist asystent avustaja pomocni yardimci "
    "usuari utilisat utilizad utilizat benutzer nutzer anwender gebruiker bruker bruger anvandare kayttaja uzytkown "
    "uzivatel pouzivatel korisni uporabni felhasznal kullanici pengguna vartotoj lietotaj kasutaja perdorues mtumiaji "
    "foydalanuv developer desarrollador desenvolvedor sviluppator developpeur entwickler ontwikkelaar "
    "instruction instruktion instruccion instruc istruzion instrukc anweisung consigne talimat".split()
)
"""Words for user, assistant, system, developer and instructions in languages written in Latin letters, without their
accents, in capitals or not. One too many costs a colon."""
_UNACCENTED = str.maketrans({"ı": "i", "ł": "l", "đ": "d", "ø": "o", "ß": "ss", "æ": "ae", "œ": "oe"})


def unlabelled(line: str) -> str:
    """One line of visible characters, with a dash in place of the colon of each label."""
    pieces, position = [], 0
    for colons in _COLONS.finditer(line):
        before = line[max(position, colons.start() - _WINDOW_CHARS) : colons.start()]
        if _is_label(before, colons[0][0]):
            gap = "" if line[colons.end() :][:1] in (" ", "") else " "
            pieces += [line[position : colons.start()].rstrip(), " -", gap]
            position = colons.end()
    return "".join([*pieces, line[position:]])


def _is_label(before: str, colon: str) -> bool:
    run = _last_run(unicodedata.normalize("NFKC", before))
    words = re.split(r"[\s_\-]+", run.strip(" _-"))
    if not words[-1]:
        return False
    if _names_role(words) or _is_mixed(words[-1]):
        return True
    if len(words) > LABEL_WORDS_MAX or len(run) > LABEL_CHARS_MAX:
        return False
    own = _SENTENCE_ENDS.get(colon)
    if any(_is_foreign(char) for char in run):
        return own is None or not unicodedata.name(words[-1][0], "").startswith(own)
    return _folded(words[0]).startswith(_STEMS) and "'" not in words[0] and "’" not in words[0]


def _last_run(before: str) -> str:
    """The words that end the text, without the brackets, quotes and stars around them; empty behind a digit."""
    end = len(before)
    while end and not before[end - 1].isalnum() and not _belongs(before[end - 1]):
        end -= 1
    start = end
    while start and (before[start - 1] in " '’_-" or _belongs(before[start - 1])):
        start -= 1
    return before[start:end]


def _belongs(char: str) -> bool:
    return unicodedata.category(char)[0] in "LM"


def _names_role(words: list[str]) -> bool:
    last = _folded(words[-1])
    return last in _WORDS or last.startswith(_STEMS) or (len(words) > 1 and f"{_folded(words[-2])} {last}" in _PAIRS)


def _folded(word: str) -> str:
    spread = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in spread if not unicodedata.combining(char)).translate(_UNACCENTED)


def _is_mixed(word: str) -> bool:
    return any(_is_foreign(char) for char in word) and any(char.isascii() and char.isalpha() for char in word)


def _is_foreign(char: str) -> bool:
    """A letter outside the Latin of European languages and Vietnamese, which end at U+024F and U+1EFF; small capitals
    and phonetic letters are outside."""
    return char.isalpha() and ord(char) > 0x24F and not 0x1E00 <= ord(char) <= 0x1EFF
