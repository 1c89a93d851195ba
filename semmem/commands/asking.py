"""Calls to a running semmem: where it is, who asks, and what every failure on the way is called."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from semmem.commands.command import Exit, Failure, Run, misused
from semmem.commands.terminal import answer
from semmem.config import Settings, load
from semmem.imports import as_if_absent

with as_if_absent("httpx._main"):  # its command line, with 3 MB of libraries
    import httpx

NO_SERVER, NO_TOKEN = "NO_SERVER", "NO_TOKEN"
"""Codes of a Failure: nobody listens, and there is nothing to ask with."""
TIMEOUT_S = 15.0
"""Longer than the API waits for a store (``call_timeout_s``): it is to say which part does not answer."""
LONG_TIMEOUT_S = 300.0
"""A purge of a large store takes long (docs/erasing.md), and others may be waiting for theirs; so do copies."""

STATUSES = {
    **dict.fromkeys((401, 403, 421), Exit.REFUSED),
    **dict.fromkeys((409, 429, 503), Exit.NOT_NOW),
    404: Exit.NOT_FOUND,
}
"""The exit status for an answer of the API; any other refusal is Exit.NOT_DONE."""
REMEDIES = {
    401: "the token is listeners.api.admin_token of --config, or what --token-env names",
    403: "another token may: --token-env",
    421: "listeners.api.allowed_hosts names the hosts that are served",
}


Told = Mapping[str, Any]


def printing(
    ask: Callable[[Api, argparse.Namespace], Any],
    shown: Callable[[Any], Iterable[str]],
    fails: Callable[[Told], bool] = lambda _told: False,
) -> Run:
    """What prints what the API answers: as it is with ``--json``, else the lines of ``shown``."""

    def run(given: argparse.Namespace) -> int:
        told = ask(opened(given), given)
        answer(given, told, shown(told))
        return Exit.NOT_DONE if fails(told) else Exit.DONE

    return run


def given_only(**asked: Any) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in asked.items() if value is not None}


def settings_of(given: argparse.Namespace) -> Settings:
    """Raises ConfigError."""
    return load(given.config, os.environ)


def named_user(given: argparse.Namespace, settings: Settings) -> dict[str, str]:
    """``user_id`` for a call; nobody where a token says it. Raises Failure."""
    if given.user is not None:
        return {"user_id": given.user}
    if given.api_key_env is not None:
        return {"user_id": _user_of(given.api_key_env, settings)}
    if given.token_env is None:
        raise misused("--user", "name --user, --api-key-env, or by --token-env a token that is bound to a user")
    return {}


def _user_of(variable: str, settings: Settings) -> str:
    from semmem.request.identity import user_of_key  # with numpy, which calls of an API do without

    rules = settings.identity.api_key
    if not rules.enabled:
        reason = "identity.api_key.enabled is false: API keys are no users in this configuration"
        raise misused("--api-key-env", reason)
    if not (key := os.environ.get(variable, "").strip()):
        raise misused("--api-key-env", f"the environment variable {variable} holds no API key")
    return user_of_key(rules.hmac_secret.get_secret_value().encode(), key)


def opened(given: argparse.Namespace) -> Api:
    """The API, and whose memories, where the command is about one user. Raises ConfigError and Failure."""
    settings = settings_of(given)
    whose = named_user(given, settings) if "api_key_env" in given else {}
    return connected(given, settings, whose=whose)


def connected(
    given: argparse.Namespace, settings: Settings, *, timeout_s: float = TIMEOUT_S, whose: dict[str, str] | None = None
) -> Api:
    """The API of the semmem that is meant. Raises Failure."""
    api = settings.listeners.api
    url = _url(given.api) if given.api is not None else f"http://{api.address}"
    if given.token_env is None:
        token, place = api.admin_token.get_secret_value(), "listeners.api.admin_token"
        reason = "there is no token: name the running semmem's configuration with --config, or a variable"
        reason += " that holds a token with --token-env"
    else:
        token, place = os.environ.get(given.token_env, "").strip(), "--token-env"
        reason = f"there is no token: the environment variable {given.token_env} is empty"
    if not token:
        raise Failure(NO_TOKEN, place, reason, Exit.REFUSED)
    return Api(url, token, timeout_s, whose or {})


def _url(told: str) -> str:
    """Raises Failure for what leads nowhere."""
    try:
        url = httpx.URL(told)
    except httpx.InvalidURL as error:
        raise Failure("BAD_URL", "--api", f"{told!r} is no URL: {error}", Exit.MISUSED) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise Failure("BAD_URL", "--api", f"{told!r} is no URL of an API, such as http://127.0.0.1:8080", Exit.MISUSED)
    return told.rstrip("/")


@dataclass(eq=False)
class Api:
    """A running semmem. Every failure is a Failure whose path is the URL. ``whose``: what calls about the user who is
    meant say in their query, or body."""

    url: str
    token: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    whose: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, **asked: Any) -> Any:
        """What the API answers. Raises Failure where it refuses."""
        came = self.answer(method, path, **asked)
        if not came.is_success:
            raise refusal(came, self.url + path)
        try:
            return came.json()
        except ValueError:
            reason = "answered something that is no JSON; is this semmem's API?"
            raise Failure("NOT_AN_API", self.url + path, reason) from None

    def answer(self, method: str, path: str, **asked: Any) -> httpx.Response:
        """The answer, whatever it says."""
        with self._errors(path), self._client() as http:
            return http.request(method, self.url + path, **asked)

    @contextmanager
    def stream(self, method: str, path: str, **asked: Any) -> Iterator[httpx.Response]:
        """An answer that is read piece by piece."""
        with self._errors(path), self._client() as http, http.stream(method, self.url + path, **asked) as answer:
            if not answer.is_success:
                answer.read()
                raise refusal(answer, self.url + path)
            yield answer

    def _client(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(timeout=self.timeout_s, trust_env=False, headers=headers)

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        at = self.url + path
        try:
            yield
        except httpx.TimeoutException:
            raise Failure("NO_ANSWER", at, f"no answer within {self.timeout_s:g} s", Exit.NO_ANSWER) from None
        except httpx.ConnectError as error:
            reason = f"nothing listens there ({error}); is semmem running, and is this its API?"
            raise Failure(NO_SERVER, at, reason, Exit.NO_ANSWER) from None
        except httpx.HTTPError as error:
            reason = f"the answer broke off ({type(error).__name__}: {error})"
            raise Failure("NO_ANSWER", at, reason, Exit.NO_ANSWER) from None
        except UnicodeEncodeError:
            raise Failure("BAD_TOKEN", at, "the token holds letters that no token has", Exit.REFUSED) from None


def refusal(answer: httpx.Response, at: str) -> Failure:
    """What the API said no with, in words; in either shape that it has for errors."""
    told = _error(answer)
    code, reason = told.get("code", ""), told.get("message") or told.get("detail") or told.get("title") or ""
    if not code:
        return Failure("NOT_AN_API", at, f"answered {answer.status_code}, and not as semmem's API does", Exit.NOT_DONE)
    remedy = REMEDIES.get(answer.status_code, "")
    if after := answer.headers.get("retry-after"):
        remedy = f"try again in {after} s"
    words = f"answered {answer.status_code} {code}: {reason}" + (f"; {remedy}" if remedy else "")
    status = Exit.PENDING if code == "ERASURE_PENDING" else STATUSES.get(answer.status_code, Exit.NOT_DONE)
    return Failure(code, at, words, status, http_status=answer.status_code)


def _error(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    if not isinstance(told, dict):
        return {}
    inner = told.get("error", told)
    return inner if isinstance(inner, dict) else told
