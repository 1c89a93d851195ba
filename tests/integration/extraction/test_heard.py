"""Whose voice it is, with the vectors of the real embedder: they tell ways of pasting that no words were learnt of."""

from __future__ import annotations

import pytest

from semmem.extraction.lasting.classifier import SIGNATURES
from semmem.extraction.reading import UNITS_PER_BATCH_MAX, Read, Reader
from semmem.extraction.voice.hearing import UNITS_EMBEDDED_MAX, heard, to_embed
from semmem.memory import Scope, Turn, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.ports.learning import Batch
from tests.support.fakes import HeldEmbedder

TOLD = "I am not allergic to peanuts any more."
SOMEBODY_ELSES = "Grandpa's diary, page one. I am allergic to bees and I live in Cork."
STATEMENT = (
    "summarise for my file:\n\nSTATEMENT OF CARL WENDT\nI, Carl Wendt, of Mill Lane, say as follows. 1. I have driven "
    "a bus since 2004. 2. I have asthma and was diagnosed in 2016. 3. I have three daughters. 4. I do not eat meat."
)
PASTED = (
    "Translate the following text to French.\n\nRemember that I am not allergic to peanuts any more.",
    f"Please proofread this paragraph.\n\n{TOLD} It took three years of treatment.",
    f"Write down what happens next in the story. Marta put the bowl on the table. {TOLD} She laughed.",
    f"[12:03, 23/11/2026] Anna: {TOLD}\n[12:04, 23/11/2026] Ben: great news",
    f"A customer left this review of our shop, how should I answer? {TOLD} I can eat peanuts again.",
    f"Source: https://example.com/story\n\n{TOLD} The clinic was wonderful.\n\nSummarise it.",
    "Übersetze den folgenden Text ins Englische.\n\nIch bin nicht mehr gegen Erdnüsse allergisch.",
    "Traduce al inglés el texto siguiente.\n\nYa no soy alérgica a los cacahuetes.",
    'The driver said "I adore peanut butter and my dog does too" out of nowhere.',
    "以下のレビューを要約してください。\n\nもうピーナッツアレルギーではないので、安心して食べられました。星五つです。",
)
OWN = (
    "I am moving out in June and I have two cats now.",
    "Hi! Quick reminder that I moved to Cork. What could I cook with leeks?",
    "My tenant moved out in June, so I live in the whole house now.",
    "Write my bio. I am a nurse from Cork and I have three children.",
    "My new phone number is 07700 900123.",
    "Remember that my email is jo.hartley@example.org",
    "hey, i got a new number: 07700 900456",
    "My address is 14 Elm Street, Bristol BS1 4XY.",
    "Merk dir bitte, dass meine E-Mail-Adresse lea.brandt@example.de ist.",
    "Souviens-toi que mon adresse mail est claire.dubois@example.fr",
    "He cambiado de móvil: ahora es el 655 443 322",
    "私の新しい電話番号は090-1234-5678です。",
    TOLD,
    "Remember that I am not allergic to peanuts any more.",
    "Hi again. I'm no longer vegan. Can you suggest a dinner?",
    "Quick question. I moved from Lyon to Nantes in May, how do I register there?",
    "Ich bin nicht mehr gegen Erdnüsse allergisch.",
    "Souviens-toi que je ne travaille plus chez Danone.",
    "Ya no soy vegetariana, ¿qué ceno hoy?",
    "先月大阪に引っ越したので、おすすめの喫茶店を教えて。",
)


def batch(*texts: str) -> Batch:
    turns = tuple(Turn(text, Scope("ann"), place, text, 0.0) for place, text in enumerate(texts))
    return Batch("b", Scope("ann"), turns, turns[:1], "test", attempt=1)


def said(read: Read) -> list[str]:
    return [turn.user_text for turn in read.shown.turns]


@pytest.mark.asyncio(loop_scope="module")
async def test_vectors_are_sure_of_somebody_else_where_words_only_doubt(embedder: Embedder) -> None:
    assert not heard(SOMEBODY_ELSES).mixed
    reader, one = Reader(embedder), batch(SOMEBODY_ELSES)
    read = await reader.read(one)
    assert read.shown.mixed == {SOMEBODY_ELSES}
    texts = [turn.user_text for turn in (*read.shown.turns, *read.shown.context, *await reader.turns(one.turns))]
    assert not any("bees" in text for text in texts)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_read_again_needs_no_embedder(embedder: Embedder) -> None:
    reader, one = Reader(embedder), batch(SOMEBODY_ELSES)
    read = await reader.read(one)
    assert reader.read_with(one, read.embedded).shown == read.shown != reader.read_with(one).shown


@pytest.mark.parametrize("text", [*PASTED, STATEMENT])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_somebody_pastes_is_not_the_users_voice(embedder: Embedder, text: str) -> None:
    read = await Reader(embedder).read(batch(text))
    assert read.shown.doubted == {text}
    words = ("peanut", "Erdn", "arachide", "cacahuete", "ピーナッツ", "meat", "asthma")
    assert [word for word in words if word in "".join(said(read))] == []


@pytest.mark.parametrize(
    "text",
    [
        "I stopped eating meat in March and I cook for two.\n\nTranslate the text above into French, please.",
        "Corrige les fautes dans ce texte.\n\nJe ne suis plus allergique aux arachides.",
        "Subject: Offer\nDear Sir, I am a prince, I own a gold mine and I may eat peanuts.",
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_handed_in_changes_nothing(embedder: Embedder, text: str) -> None:
    assert (await Reader(embedder).read(batch(text))).shown.doubted == {text}


@pytest.mark.parametrize("text", OWN)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_users_say_of_themselves_is_their_own_voice(embedder: Embedder, text: str) -> None:
    read = await Reader(embedder).read(batch(text))
    assert said(read) == [text]
    assert read.shown.doubted == frozenset()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_list_of_ones_own_is_doubted_at_most(embedder: Embedder) -> None:
    text = "Some things about me, so you know:\n\nI'm vegan. I live in Porto with my two cats. I work nights."
    assert said(await Reader(embedder).read(batch(text))) == [text]


@pytest.mark.asyncio(loop_scope="module")
async def test_beside_a_pasted_text_the_users_own_words_stay_and_change_nothing(embedder: Embedder) -> None:
    text = f"I live in Lisbon.\n\nTranslate the following text to French.\n\n{TOLD}"
    read = await Reader(embedder).read(batch(text))
    assert "I live in Lisbon." in said(read)[0]
    assert "peanuts" not in said(read)[0]
    assert read.shown.doubted == {text}


class Named(HeldEmbedder):
    """Says that it is one of those that the weights were learnt of."""

    def __init__(self, signature: str = SIGNATURES[0], *, fails: bool = False) -> None:
        super().__init__(held=False)
        self._called, self._fails = signature, fails

    @property
    def signature(self) -> str:
        return self._called

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self._fails:
            raise EmbedderError("down")
        return await super().embed(text, within_s=within_s)


@pytest.mark.asyncio
async def test_where_no_vectors_can_be_made_words_alone_are_heard() -> None:
    one = batch("I live in Lisbon.", f"Proofread this text:\n\n{TOLD}")
    stranger = Named("another/model/384")
    by_words = Reader().read_with(one).shown
    for embedder in (Named(fails=True), stranger):
        assert (await Reader(embedder).read(one)).shown == by_words
    assert stranger.asked == []


@pytest.mark.asyncio
async def test_of_a_message_the_first_and_the_last_units_are_embedded_and_of_a_batch_so_many() -> None:
    long = [f"I own shop x{number}z." for number in range(UNITS_EMBEDDED_MAX + 10)]
    chosen = to_embed(" ".join(long))
    assert chosen == long[: UNITS_EMBEDDED_MAX // 2] + long[-UNITS_EMBEDDED_MAX // 2 :]
    embedder = Named()
    await Reader(embedder).read(batch(*(f"I own {name}. I sold {name}." for name in range(UNITS_PER_BATCH_MAX))))
    assert len(embedder.asked) == len(set(embedder.asked)) == UNITS_PER_BATCH_MAX
