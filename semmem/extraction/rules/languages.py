"""First-person basics in Spanish, German, French and Chinese, kept in the user's words with "User" as the subject."""

from __future__ import annotations

import re

from semmem.extraction.rules.patterns import folded

_SPANISH = {
    "soy": "es", "tengo": "tiene", "vivo": "vive", "trabajo": "trabaja", "como": "come", "bebo": "bebe", "hablo":
    "habla", "estudio": "estudia", "prefiero": "prefiere", "odio": "odia", "juego": "juega", "toco": "toca",
    "corro": "corre", "conduzco": "conduce", "uso": "usa", "nací": "nació", "aprendo": "aprende", "fumo": "fuma",
    "colecciono": "colecciona", "adoro": "adora", "detesto": "detesta", "compré": "compró", "enseño": "enseña",
    "cocino": "cocina", "nado": "nada",
}  # fmt: skip
_FRENCH = {
    "suis": "est", "ai": "a", "habite": "habite", "vis": "vit", "travaille": "travaille", "mange": "mange",
    "bois": "boit", "parle": "parle", "étudie": "étudie", "préfère": "préfère", "déteste": "déteste", "adore":
    "adore", "aime": "aime", "joue": "joue", "cours": "court", "conduis": "conduit", "utilise": "utilise",
    "apprends": "apprend", "fume": "fume", "enseigne": "enseigne", "collectionne": "collectionne", "cuisine":
    "cuisine", "nage": "nage", "supporte": "supporte",
}  # fmt: skip
_GERMAN = {
    "bin": "ist", "habe": "hat", "wohne": "wohnt", "lebe": "lebt", "arbeite": "arbeitet", "esse": "isst",
    "trinke": "trinkt", "spreche": "spricht", "studiere": "studiert", "mag": "mag", "liebe": "liebt", "hasse":
    "hasst", "spiele": "spielt", "fahre": "fährt", "heiße": "heißt", "heisse": "heißt", "komme": "kommt", "lerne":
    "lernt", "sammle": "sammelt", "vertrage": "verträgt", "laufe": "läuft", "unterrichte": "unterrichtet",
    "koche": "kocht", "rauche": "raucht", "bevorzuge": "bevorzugt", "reite": "reitet", "schwimme": "schwimmt",
    "trage": "trägt", "leite": "leitet",
}  # fmt: skip

_ES = folded(rf"(?:yo )?(?P<no>(?:ya )?(?:no|nunca|siempre) )?(?P<verb>{'|'.join(_SPANISH)}) (?P<rest>\w.*)")
_ES_LIKE = folded(
    r"(?:a mí )?(?P<no>no )?me (?P<verb>gustan?|encantan?|llamo|mudé|dan? (?:asco"
    r"|miedo)) (?P<rest>\w.*)"
)
_ES_MY = folded(
    r"mis? (?P<rest>[\w'-]+ (?:[\w'-]+ ){0,3}?(?:es|son|se llaman?|vive|viven|trabaja|estudia|tiene|está)\b.*)"
)
_FR = folded(rf"(?:je |j')(?P<no>n'|ne )?(?P<verb>{'|'.join(_FRENCH)}) (?P<rest>\w.*)")
_FR_NAME = folded(r"je m'appelle (?P<rest>\w.*)")
_FR_MY = folded(
    r"(?:mon|ma|mes) (?P<rest>[\w'-]+ (?:[\w'-]+ ){0,3}?(?:est|sont|s'appelle|habite|vit|travaille|étudie|a)\b.*)"
)
_DE = folded(rf"ich (?P<verb>{'|'.join(_GERMAN)}) (?P<rest>\w.*)")
_DE_MY = folded(
    r"(?:mein|meine) (?P<rest>[\w'-]+ (?:[\w'-]+ ){0,3}?(?:ist|sind|heißt|heißen|wohnt|lebt|arbeitet|studiert|hat"
    r"|kommt|spielt|fährt|mag)\b.*)"
)
_ZH = re.compile(r"[\u4e00-\u9fff]")
_ZH_ASKS = re.compile(r"[?？吗呢]|什么|怎么|哪|谁|几|多少|为什么|请|帮我|如果|假如|翻译|写一|告诉我|想象|假设|记得|你")
_ZH_SAYS = re.compile(
    r"我(?:的)?.{0,12}?(?:叫|是|住|有|喜欢|讨厌|爱|不吃|不喝|不喜欢|过敏|工作|学|养|跑|搬|买|去|来自|出生|毕业|结婚|会说|会|从事|每天|每周|预算|吃素|名字)"
)
_ZH_PASSING = re.compile(r"我(?:想知道|想问|不知道|不懂|觉得|累|饿|困|在想|需要|要|想)|有(?:一个)?(?:问题|疑问)")
_ZH_EVENT = re.compile(r"上周|上个?月|去年|昨天|今年|前天|年前|下周|下个?月|明天|明年|\d+月\d+")
_DENIED = folded(
    r"""(?:cansad|aquí|feliz|triste|una? (?:pregunta|problema|duda)|hambre|sed|müde|hier|froh|traurig|nicht sicher
    |eine frage|ein problem
    |hunger|durst|keine ahnung|gerade|zurück|fatigu|ici|une question|un problème|faim|soif|content|désolé|prêt|que\b
    |qué)"""
)


def foreign_fact(clause: str) -> tuple[str, bool] | None:
    """The clause as (fact, is it an event) if it is a plain first-person statement in one of the languages."""
    if _ZH.search(clause):
        return _chinese(clause)
    text = clause.strip(" .!¡…")
    if text.endswith("?") or "¿" in text:
        return None
    content = _spanish(text) or _french(text) or _german(text)
    return (content, False) if content else None


def _spanish(text: str) -> str | None:
    if (match := _ES.fullmatch(text)) and not _DENIED.match(match["rest"]):
        return f"User {match['no'] or ''}{_SPANISH[match['verb'].lower()]} {_theirs(match['rest'])}"
    if match := _ES_LIKE.fullmatch(text):
        verb = {"llamo": "se llama", "mudé": "se mudó"}.get(match["verb"].lower(), f"le {match['verb'].lower()}")
        return f"User {match['no'] or ''}{verb} {_theirs(match['rest'])}"
    return f"User: su {match['rest']}" if (match := _ES_MY.fullmatch(text)) else None


def _french(text: str) -> str | None:
    if match := _FR_NAME.fullmatch(text):
        return f"User s'appelle {match['rest']}"
    if (match := _FR.fullmatch(text)) and not _DENIED.match(match["rest"]):
        return f"User {match['no'] or ''}{_FRENCH[match['verb'].lower()]} {_theirs(match['rest'])}"
    return f"User: son/sa {match['rest']}" if (match := _FR_MY.fullmatch(text)) else None


def _german(text: str) -> str | None:
    if (match := _DE.fullmatch(text)) and not _DENIED.match(match["rest"]):
        return f"User {_GERMAN[match['verb'].lower()]} {_theirs(match['rest'])}"
    return f"Users {match['rest']}" if (match := _DE_MY.fullmatch(text)) else None


_MINE = re.compile(r"\b(?:mein(e[mnrs]?)?|mon|ma|mes|mi|mis)\b", re.IGNORECASE)
_THEIRS = {"mon": "son", "ma": "sa", "mes": "ses", "mi": "su", "mis": "sus"}


def _theirs(text: str) -> str:
    return _MINE.sub(lambda match: _THEIRS.get(match[0].lower(), f"ihr{match[1] or ''}"), text)


def _chinese(text: str) -> tuple[str, bool] | None:
    if _ZH_ASKS.search(text) or _ZH_PASSING.search(text) or not _ZH_SAYS.search(text):
        return None
    return text.strip(" 。！!.").replace("我们", "User等人").replace("我", "User"), bool(_ZH_EVENT.search(text))
