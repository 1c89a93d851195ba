"""One request and its session's ledger: what it is given again, and what is kept of what it is given anew."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct, structs

from semmem.dialects import ParsedRequest
from semmem.memory import Controls, Hit, Injection, Role, Scope
from semmem.ports.errors import StoreError
from semmem.ports.events import Announce, PromptPrefix, nobody_listens
from semmem.ports.session_states import START, ShownBlock
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.retrieval.block import NOTHING, Before, Block, memories_in
from semmem.retrieval.ledger.anchors import Anchor
from semmem.retrieval.ledger.ledger import ERASED, LATE, Ledger, Page
from semmem.retrieval.ledger.truth import absent, not_looked_at, note_fit, unfit
from semmem.retrieval.rank import Ranked
from semmem.retrieval.recall import TRUTH_SHARE, Recall, Recalled
from semmem.text.digest import known_digest

KEPT, EDITED, COMPACTED = "kept", "edited", "compacted"
ABSENT_MAX = 20
"""So many memories are looked up in their history for one request; of more the session's blocks go."""

_USER, _SYSTEM = Role.USER, Role.SYSTEM  # looked up once: each look costs more than comparing

Find = Callable[[Before], Awaitable[Recalled]]
"""The search, given what is in the prompt already. Raises nothing expected."""


class Shown(Struct, frozen=True):
    """How a request's search ended. ``blocks``: all that its prompt is given; ``has``: the ids of what the prompt shows
    in the end, what the API hands on from before included. ``hits``: what was found anew and is shown. ``left`` and
    ``purpose``: as Recalled has them."""

    outcome: Outcome
    blocks: tuple[Block, ...] = ()
    has: tuple[str, ...] = ()
    hits: tuple[Hit, ...] = ()
    left: tuple[Ranked, ...] = ()
    purpose: str = ""

    @property
    def injected(self) -> int:
        """Memories in the blocks."""
        return len({each for block in self.blocks for each in block.ids})

    @property
    def tokens(self) -> int:
        return sum(block.tokens for block in self.blocks)


class SessionRequest(Struct, frozen=True):
    """A request, as its ledger sees it: ``parsed`` is what will be rewritten, ``anchors`` are those of the messages in
    the user's role that stay in it. ``turn``: the id of the turn it belongs to; ``session``: as it is called whenever
    it began; None where that is not known. ``after``: the turn that it goes on from, where the API keeps the history;
    ``has_words``: it brings the user's words, or those were added to it here; ``is_searched``: memories are searched
    for it, unless it has its block already."""

    question: Question
    parsed: ParsedRequest
    anchors: list[Anchor]
    turn: str | None
    session: str | None
    after: str = ""
    has_words: bool = True
    is_searched: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the API keeps the history, and what was put beside the user's words in it."""
        said = self.parsed.conversation
        return said.previous_id is not None or said.conversation_id is not None

    @property
    def is_new(self) -> bool:
        """Whether nobody has spoken since the user did: nothing but a retry can have come with these words."""
        for message in reversed(self.parsed.conversation.messages):
            if message.role is not _SYSTEM:
                return message.role is _USER
        return False


class _Open(Struct, frozen=True):
    """What is known before the search. ``blocks``: those of the session that may be shown, by their anchors."""

    asked: SessionRequest
    injection: Injection
    page: Page
    blocks: Mapping[str, ShownBlock]

    @property
    def here(self) -> Anchor | None:
        return self.asked.anchors[-1] if self.asked.anchors else None

    @property
    def at(self) -> int:
        return self.here.at if self.here else 0

    @property
    def begins(self) -> bool:
        """Whether a block at the session's beginning changes nothing that was sent."""
        can = self.injection.position == "turn" and self.injection.role != "user"
        return can and not self.asked.is_held and self.asked.is_new and self.at == 0


@dataclass(eq=False, repr=False)
class Showing:
    """Holds nothing of any request. ``note_uses`` is told whose memories were found for a prompt, which, and when; it
    must neither wait nor raise."""

    ledger: Ledger
    recall: Recall
    announce: Announce = nobody_listens
    note_uses: Callable[[str, Sequence[str], float], None] = lambda _user, _memory_ids, _now: None

    async def show(self, asked: SessionRequest, find: Find) -> Shown:
        """What the prompt is given: what it was given before, and what ``find`` finds beside it."""
        anchors = asked.anchors
        if asked.turn is None or asked.session is None:
            return _shown(await self._found(asked, find, Before(at=anchors[-1].at if anchors else 0)), [])
        opened = await self._open(asked, asked.session)
        again = self._again(opened)
        if sum(block.tokens for block in again) > self.recall.rules.tokens_max:  # of branches that have come together
            self.ledger.clear(opened.page, COMPACTED)
            opened, again = structs.replace(opened, blocks={}), []
        if not asked.is_new and (own := _own(opened)) is not None:
            return _repeated(opened, own, again)
        recalled = await self._found(asked, find, _before(opened, again))
        if recalled.compacted:
            self.ledger.clear(opened.page, COMPACTED)
            again = []
        self._keep(opened, recalled)
        return _shown(recalled, again)

    async def before(self, question: Question, session: str) -> Before:
        """What the session's prompts have by now, oldest first, and would be given again. Changes nothing: neither what
        is kept of the session nor the counts. ``session`` as in SessionRequest."""
        scope, said = question.scope, question.conversation
        injection = self.recall.injection("", said.model)
        if injection.position != "turn":
            return NOTHING
        name = _page_name(scope.project, session, injection, said.controls)
        page = await self.ledger.look(scope.user, name, now=question.now)
        if not page.blocks:
            return NOTHING
        if await self._why_not(page, scope, question.now, share=1.0) is not None:
            return NOTHING
        shown = (block for block in page.blocks.values() if block.text)
        blocks = tuple(sorted(shown, key=lambda block: (block.anchor != START, block.shown_at)))
        return Before(blocks=blocks, tokens=sum(block.tokens for block in blocks))

    async def _found(self, asked: SessionRequest, find: Find, before: Before) -> Recalled:
        recalled = await find(before)
        if recalled.hits:
            self.note_uses(asked.question.scope.user, memories_in(recalled.hits), asked.question.now)
        place = asked.parsed.placed  # where the request has room for them
        blocks = tuple(replace(block, injection=place(block.injection)) for block in recalled.blocks)
        return structs.replace(recalled, blocks=blocks)

    async def _open(self, asked: SessionRequest, session: str) -> _Open:
        anchors, scope, said, now = asked.anchors, asked.question.scope, asked.question.conversation, asked.question.now
        injection = self.recall.injection("", said.model)
        name = _page_name(scope.project, session, injection, said.controls)
        history = () if asked.is_held else anchors[:-1] if asked.is_new else anchors
        if injection.position != "turn" and asked.is_new:
            history = ()  # only a loop that goes on is given what it was
        page = await self.ledger.page(scope.user, name, history, held=asked.is_held, now=now)
        if not page.blocks:
            return _Open(asked, injection, page, {})
        why = await self._why_not(page, scope, now, is_searched=asked.is_searched and asked.is_new)
        if why == LATE:
            self.announce(PromptPrefix(LATE))
        elif why is not None:
            self.ledger.clear(page, why)
        blocks = {anchor: block for anchor, block in page.blocks.items() if block.text} if why is None else {}
        return _Open(asked, injection, page, blocks)

    async def _why_not(
        self, page: Page, scope: Scope, now: float, *, share: float = TRUTH_SHARE, is_searched: bool = False
    ) -> str | None:
        """Why what the page holds may not be shown, LATE where that is not known; None: it may be. What may not be is
        gone for good, what is not known is for now. ``share``: of the store's time so much is waited."""
        try:
            index = await self.recall.index(scope.user, share=share, is_searched=is_searched)
        except StoreError:
            index = None
        if index is None:
            return LATE
        blocks = not_looked_at(page, index, now)
        if not blocks:
            return None
        why = next((why for block in blocks if (why := unfit(block, index, now)) is not None), None)
        missing = absent(blocks, index) - page.withdrawn if why is None else set[str]()
        if len(missing) > ABSENT_MAX:
            return ERASED
        if why is None and missing:
            page.withdrawn |= await self.ledger.withdrawn(scope.user, missing)
            why = None if missing <= page.withdrawn else ERASED
        if why is None:
            note_fit(page, blocks, index, now)
        return why

    def _again(self, opened: _Open) -> list[Block]:
        """The blocks of the session's beginning and of earlier messages, each for its place."""
        asked, blocks, found = opened.asked, opened.blocks, list[Block]()
        if (start := blocks.get(START)) is not None and not opened.begins:
            block = _block(start, opened.injection)
            if not (asked.is_held and asked.parsed.keeps(block.injection)):
                found.append(block)
        if opened.injection.position != "turn" or asked.is_held:
            return found
        earlier = asked.anchors[:-1] if asked.is_new else asked.anchors
        kept = [(anchor, blocks[anchor.name]) for anchor in earlier if anchor.name in blocks]
        if earlier and blocks:
            here = {anchor.name for anchor in asked.anchors} | {START}
            self.announce(PromptPrefix(KEPT if blocks.keys() <= here else EDITED))
        texts = {block.injection.text for block in found}
        for anchor, shown in kept:  # branches that come together may have been told the same at two messages
            if shown.text not in texts:
                texts.add(shown.text)
                found.append(_block(shown, opened.injection, anchor.at))
        return found

    def _keep(self, opened: _Open, recalled: Recalled) -> None:
        """What the message was shown, in place of what an earlier try was."""
        asked, here = opened.asked, opened.here
        turn, now = asked.turn or "", asked.question.now
        places = [(here.name if here else turn, recalled.block)]
        if opened.begins:
            places.append((START, recalled.start))
        for anchor, block in places:
            had, until = opened.page.blocks.get(anchor), now + self.ledger.rules.kept_s
            if block is not None:
                until = until if block.expires_at is None else min(until, block.expires_at)
                text, position = block.injection.text, block.injection.position
                new = ShownBlock(anchor, text, block.memories, block.tokens, turn, position, now, until, asked.after)
            elif had is not None or (asked.is_held and anchor != START):
                new = ShownBlock(anchor, "", (), 0, turn, opened.injection.position, now, until, asked.after)
            else:
                continue
            self.ledger.add(opened.page, new)
        if here is not None:
            self.ledger.knows(opened.page, (here.name,))


def _page_name(project: str | None, session: str, injection: Injection, controls: Controls) -> str:
    """The name of the page with a session's blocks. Requests that want other memories, or get them elsewhere, have
    pages of their own; who a body says it is from, and whether it is kept, makes none."""
    wanted = controls.types, controls.limit, controls.threshold
    return known_digest(project or "", session, injection.role, injection.position, repr(wanted))


def _own(opened: _Open) -> ShownBlock | None:
    """The block of the message that the request goes on from."""
    if opened.here is not None:
        return opened.blocks.get(opened.here.name)
    turn = opened.asked.turn
    return next((block for block in opened.blocks.values() if block.turn == turn and block.anchor != START), None)


def _repeated(opened: _Open, own: ShownBlock, again: list[Block]) -> Shown:
    """The same turn goes on."""
    asked, block = opened.asked, _block(own, opened.injection, opened.at)
    if not asked.has_words and asked.parsed.keeps(block.injection):
        return Shown(Outcome.ALREADY_INJECTED, tuple(again), (*_ids(again), *block.ids))
    has = {each.injection.text for each in again}
    blocks = again if block.injection.text in has else [*again, block]
    return Shown(Outcome.REPEATED, tuple(blocks), _ids(blocks))


def _before(opened: _Open, again: list[Block]) -> Before:
    at = opened.at
    if opened.injection.position != "turn":
        return Before(at=at)
    if opened.asked.is_held:
        blocks = _handed_on(opened)
    else:
        texts = {block.injection.text for block in again}
        blocks = [block for block in opened.blocks.values() if block.text in texts]
    return Before(at, tuple(blocks), sum(block.tokens for block in again), opened.begins)


def _handed_on(opened: _Open) -> list[ShownBlock]:
    """The blocks of the turns that the request goes on from, one after another: the API has them in its history."""
    of_turn = {block.turn: block for block in opened.page.blocks.values()} if opened.blocks else {}
    found: list[ShownBlock] = []
    turn = opened.asked.after
    while (block := of_turn.pop(turn, None)) is not None:
        found.append(block)
        turn = block.after
    return [block for block in reversed(found) if block.text]


def _shown(recalled: Recalled, again: list[Block]) -> Shown:
    blocks = [*again, *recalled.blocks]
    return Shown(recalled.outcome, tuple(blocks), _ids(blocks), recalled.hits, recalled.left, recalled.purpose)


def _ids(blocks: list[Block]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for block in blocks for each in block.ids))


def _block(shown: ShownBlock, injection: Injection, at: int = 0) -> Block:
    """It, as it goes into the prompt."""
    placed = replace(injection, text=shown.text, position=shown.position, at=at)
    return Block(placed, shown.memories, shown.tokens, shown.expires_at)
