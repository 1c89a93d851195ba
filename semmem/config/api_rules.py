"""Rules that tie keys of ``listeners.api`` together."""

from __future__ import annotations

from urllib.parse import urlsplit

from semmem.config.problems import Conflicts
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN, is_loopback


def api_is_guarded(settings: Settings) -> Conflicts:
    api = settings.listeners.api
    size = len(api.admin_token.get_secret_value())
    if is_loopback(api.host) or size >= SECRET_CHARS_MIN or (api.jwt.keys and not size):
        return
    if size:
        reason = f"is shorter than {SECRET_CHARS_MIN} characters while {api.address} is reachable from other machines"
        yield ("listeners.api.admin_token", reason, "use a longer random token")
    else:
        yield (
            "listeners.api.address",
            "is reachable from other machines, and there is no admin_token",
            "set listeners.api.admin_token_env (or listeners.api.jwt, for users alone), or listen on 127.0.0.1",
            "listeners.api.admin_token",
            "listeners.api.admin_token_env",
        )


def web_tokens_are_for_us(settings: Settings) -> Conflicts:
    """Otherwise every token of the provider's opens this door, whatever it was made for."""
    jwt = settings.listeners.api.jwt
    if not jwt.keys:
        return
    if not (jwt.issuer or jwt.audience):
        reason = "verifies tokens, while neither issuer nor audience says which of them are meant for semmem"
        yield ("listeners.api.jwt.keys", reason, "set listeners.api.jwt.audience, or at least issuer")
    if jwt.keys.startswith("http://") and not is_loopback(urlsplit(jwt.keys).hostname or ""):
        reason = "fetches keys over plain HTTP from another machine: whoever answers makes the keys"
        yield ("listeners.api.jwt.keys", reason, "use https://, or a file")


def trusted_callers_are_local(settings: Settings) -> Conflicts:
    """This listener has no client certificates: who reaches it, is whoever he says."""
    api = settings.listeners.api
    if api.trusted_headers and not is_loopback(api.host):
        yield (
            "listeners.api.trusted_headers",
            f"would be believed from anybody who reaches {api.address}, which has no mTLS",
            "listen on 127.0.0.1, behind a proxy on this machine that authenticates callers, sets these headers and "
            "strips those of clients; or leave them out and use the admin token",
            "listeners.api.address",
        )
