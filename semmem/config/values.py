"""The kinds of single values a configuration holds. Each refusal says what is wrong and what would be right."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

UNIX_SOCKET_BYTES_MAX = 107
"""``sun_path`` of unix(7) holds 108 bytes with its closing NUL."""

HOP_BY_HOP_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""RFC 9110 section 7.6.1: they belong to one connection, not to a request."""

CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "proxy-authenticate", "cookie", "set-cookie"})

_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,128}")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):([0-9]{1,5})")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_HOST_NAME = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){0,20}|[0-9a-f:]{2,39}")
_ORIGIN = re.compile(r"https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")
_POSTGRES_URL = re.compile(r"postgres(ql)?://[^\s#]+")
_POSTGRES_PASSWORD = re.compile(r"//[^/@:]*:[^/@]*@|[?&]password=")
_URL = re.compile(r"https?://[^\s@?#]+")


PORT_MAX = 65_535
SECRET_CHARS_MIN = 16
"""Of a secret that others may guess at."""
_URL_PORT = re.compile(r"https?://[^/]*:([0-9]+)(?:/|$)")


STORE = "the store's client is made with it"
NEWS = "the connection to other replicas is made with it"
ERASING = "erasures under way keep to it"
"""Why keys in several files need a restart."""


class Section(BaseModel):
    """A mapping in the configuration: known keys only, exact types, never changed after loading."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, hide_input_in_errors=True
    )

    restart: ClassVar[str | Mapping[str, str]] = ""
    """Why a running semmem does not take up another value: of all keys here, or by their names, separated by spaces.
    Tests hold it against what the parts of a running semmem read."""

    @classmethod
    def restart_reason(cls, name: str) -> str:
        """Why a key needs a restart; empty: a reload takes it up."""
        if isinstance(cls.restart, str):
            return cls.restart
        return next((reason for names, reason in cls.restart.items() if name in names.split()), "")

    @model_validator(mode="before")
    @classmethod
    def _commented_out(cls, value: Any) -> Any:
        # A section whose keys are all commented out is null in YAML.
        return {} if value is None else value


def key(default: Any, about: str, **bounds: Any) -> Any:
    """A field: its default (``...``: it must be given), what the reference says of it, and its bounds as ``Field`` has
    them."""
    return Field(default, description=about, **bounds)


def refusal(reason: str, remedy: str) -> PydanticCustomError:
    """The error a validator raises: ``reason`` says what is wrong, ``remedy`` what would be right."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "remedy": remedy})


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of ``host:port``; an IPv6 host without its brackets. Raises ValueError."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[2]) > PORT_MAX:
        raise ValueError("not host:port")
    return match[1].strip("[]"), int(match[2])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. A name other than ``localhost`` is not believed to be local."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise refusal("contains a control or invisible character", "write it on one line, without tabs")
    return text


def _secret_line(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise refusal(
            "contains a space, a line end or a non-ASCII character", "give the secret alone, without a line end"
        )
    return secret


def _port_in_range(port: str) -> None:
    if len(port) > 5 or int(port) > PORT_MAX:
        raise refusal(f"has a port above {PORT_MAX}", f"use a port from 1 to {PORT_MAX}")


def _url_port_in_range(text: str) -> None:
    if found := _URL_PORT.match(text):
        _port_in_range(found[1])


def _address(text: str) -> str:
    if found := _ADDRESS.fullmatch(text):
        _port_in_range(found[2])
    try:
        host_and_port(text)
    except ValueError:
        raise refusal("is not host:port", "write for example 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080") from None
    return text


def _server_address(text: str, remedy: str) -> str:
    if found := _ADDRESS.fullmatch(text):
        _port_in_range(found[2])
    _url_port_in_range(text)
    if text == "" or _ADDRESS.fullmatch(text) or _URL.fullmatch(text):
        return text
    raise refusal("is neither host:port nor an http(s) URL without credentials", remedy)


def _milvus_address(text: str) -> str:
    remedy = 'write for example milvus:19530, or "" for the embedded store; credentials belong in memory.milvus.token'
    return _server_address(text, remedy)


def _qdrant_address(text: str) -> str:
    remedy = 'write for example qdrant:6333, or "" for the local mode; the key belongs in memory.qdrant.api_key'
    return _server_address(text, remedy)


def _journal_url(text: str) -> str:
    if text == "":
        return text
    if not _POSTGRES_URL.fullmatch(text):
        raise refusal(
            "is not a postgresql:// URL",
            'write for example postgresql://semmem@db:5432/semmem, or "" for a SQLite file in data_dir',
        )
    if _POSTGRES_PASSWORD.search(text):
        raise refusal("holds a password", "leave it out, and put it into journal.password or journal.password_env")
    return text


def _http_url(text: str) -> str:
    _url_port_in_range(text)
    if text == "" or _URL.fullmatch(text):
        return text
    raise refusal("is not an http(s) URL without credentials and query", "write for example https://models.internal/v1")


def _header_name(name: str) -> str:
    if name.startswith(":"):
        raise refusal("is a pseudo-header", "name an ordinary header, for example x-user-id")
    if not _HEADER.fullmatch(name):
        raise refusal("is not a lower-case header name", "write for example x-user-id")
    if name in HOP_BY_HOP_HEADERS:
        raise refusal("is a hop-by-hop header", "name a header that travels with the request, for example x-user-id")
    return name


def _header(name: str) -> str:
    if _header_name(name) in CREDENTIAL_HEADERS:
        raise refusal(
            "carries credentials, and would be kept as an id",
            "name a header that carries an id, for example x-user-id; for memory per API key see identity.api_key",
        )
    return name


def _trusted_header(name: str) -> str:
    if name.startswith("x-semmem-"):
        raise refusal("is one of semmem's own headers, which clients send", "name a header your gateway sets")
    return _header(name)


def _host_name(name: str) -> str:
    if not _HOST_NAME.fullmatch(name):
        raise refusal(
            "is not a lower-case host name or IP address without a port",
            "write for example semmem.internal, *.svc.cluster.local or 10.0.0.5",
        )
    return name


def _origin(text: str) -> str:
    if not _ORIGIN.fullmatch(text):
        raise refusal("is not an origin in lower case", "write for example https://studio.internal, without a path")
    return text


def _header_or_none(name: str) -> str:
    return _header(name) if name else name


def _metadata_path(path: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) == 1:
        raise refusal("names a namespace and no value in it", "write for example [security.filter, blocked], or []")
    return path


def _unix_socket(path: str) -> str:
    size = len(os.fsencode(_one_line(path)))
    if size > UNIX_SOCKET_BYTES_MAX:
        raise refusal(
            f"is {size} bytes long; the system takes {UNIX_SOCKET_BYTES_MAX}",
            "use a shorter path, for example /run/semmem.sock",
        )
    return path


def _identifier(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise refusal("is not a plain name", "use letters, digits and _, not starting with a digit, at most 255")
    return name


def _variable_name(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise refusal("is not the name of an environment variable", "write the name alone, without $")
    return name


def _url_path(path: str) -> str:
    if not re.fullmatch(r"(/[^\s?#]*)?", path):
        raise refusal("is not a URL path", "write for example /v1")
    return path


def _list_to_tuple(value: Any) -> Any:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else value


Element = TypeVar("Element")
ListOf = Annotated[tuple[Element, ...], BeforeValidator(_list_to_tuple)]
"""A YAML list, kept as a tuple so that settings are frozen all the way down. Null means empty."""

Line = Annotated[str, Field(max_length=1024), AfterValidator(_one_line)]
NonEmptyLine = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_one_line)]
Prose = Annotated[str, Field(max_length=4000)]
Secret = Annotated[SecretStr, Field(max_length=4096), AfterValidator(_secret_line)]
Address = Annotated[str, AfterValidator(_address)]
MilvusAddress = Annotated[str, Field(max_length=1024), AfterValidator(_milvus_address)]
JournalUrl = Annotated[str, Field(max_length=1024), AfterValidator(_journal_url)]
QdrantAddress = Annotated[str, Field(max_length=1024), AfterValidator(_qdrant_address)]
HttpUrl = Annotated[str, Field(max_length=1024), AfterValidator(_http_url)]
UrlPath = Annotated[str, Field(max_length=1024), AfterValidator(_url_path)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
"""Any, one that carries credentials too."""
Header = Annotated[str, AfterValidator(_header)]
TrustedHeader = Annotated[str, AfterValidator(_trusted_header)]
HeaderOrNone = Annotated[str, AfterValidator(_header_or_none)]
HostName = Annotated[str, AfterValidator(_host_name)]
Origin = Annotated[str, AfterValidator(_origin)]
MetadataPath = Annotated[ListOf[NonEmptyLine], AfterValidator(_metadata_path)]
UnixSocket = Annotated[str, AfterValidator(_unix_socket)]
Identifier = Annotated[str, AfterValidator(_identifier)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Milliseconds = Annotated[int, Field(ge=1, le=60_000)]
Days = Annotated[int, Field(ge=0, le=36_500)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Port = Annotated[int, Field(ge=1, le=65_535)]
