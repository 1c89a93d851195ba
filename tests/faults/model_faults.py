"""The language model that extracts facts fails; nobody is waiting for it, and nobody must notice."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from tests.faults.counts import NotProven, proven
from tests.faults.forms import Form
from tests.faults.house import House, Trial
from tests.faults.proxy import Proxy
from tests.faults.store_faults import behaving
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

GOOD = '{"facts": []}'


class Extraction:
    """A language model that answers as it is told to at the moment, behind a proxy."""

    def __init__(self) -> None:
        self.reply: str | Reply = GOOD
        self.server = ScriptedLLM(self._answer)

    def _answer(self, _body: Body) -> str | Reply:
        return self.reply

    def fails(self, reply: str | Reply, status: str, model_status: str) -> Callable[[House, Form], Trial]:
        """A fault of the model. ``status`` is how the batch ends, ``model_status`` how the call of the model did."""

        def run(house: House, form: Form) -> Trial:
            asked = len(self.server.requests)
            self.reply = reply
            try:
                trial = _while_learning(house, form, status, model_status)
            finally:
                self.reply = GOOD
            if len(self.server.requests) == asked:
                raise NotProven("the model was never asked")
            return trial

        return run

    def unreachable(self, proxy: Proxy) -> Callable[[House, Form], Trial]:
        def run(house: House, form: Form) -> Trial:
            with behaving(house, proxy, "refuse"):
                return _while_learning(house, form, "postponed", "ModelUnavailable")

        return run


def _while_learning(house: House, form: Form, status: str, model_status: str) -> Trial:
    """A turn is learnt from while the fault lasts, and another request comes meanwhile, which may be learnt from as
    well by the time we look: so often, or more. A fresh semmem each time: the circuit breaker remembers failures."""
    plain = house.ask(form, plain=True)
    house.started_anew()
    called = house.rises("semmem_model_seconds_count", role="memory_extraction", status=model_status, more=True)
    ended = house.rises("llm_memory_extraction_total", status=status, more=True)
    user = f"{house.user}-{secrets.token_hex(3)}"
    told = house.ask(form, user=user, body=form.question("I like olives.")).status
    if told != 200:
        raise NotProven(f"status {told} when telling")
    waiting = proven(lambda: house.sidecar.semmem.turns(user), "the turn is journalled")
    faulted = house.ask(form, user=user)
    return Trial(plain, faulted, f"{called()}; {ended()}; {waiting}")
