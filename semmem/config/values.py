"""The kinds of single values a configuration holds. Each refusal says what is wrong and what would be right; those of
texts are in values.toml."""

import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic.functional_serializers import PlainSerializer
from pydantic_core import PydanticCustomError

from semmem.config.problems import REDACTED

UNIX_SOCKET_BYTES_MAX = 107
"""``sun_path`` of unix(7) holds 108 bytes with its closing NUL."""
PORT_MAX = 65_535
SECRET_CHARS_MIN = 16
"""Of a secret that others may guess at."""

STORE = "the store's client is made with it"
NEWS = "the connection to other replicas is made with it"
ERASING = "erasures under way keep to it"
"""Why keys in several files need a restart."""

HOUR_S, DAY_S = 3_600.0, 86_400.0
_SECONDS = {"_ms": (1, 1000), "_hours": (HOUR_S, 1), "_days": (DAY_S, 1)}
"""What makes seconds of a key's unit: it is multiplied by the one, and divided by the other."""
_NONE: Any = object()
_LOOKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

Made = TypeVar("Made")


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

    def fill(self, make: Callable[..., Made], *given: Any, prefix: str = "", **others: Any) -> Made:
        """What is made of keys here, behind ``prefix``: of the same name, or of the same time in another unit.
        ``given``, ``others``: what is no key here, or has another value. What is neither keeps its default."""
        names = [name for name in [*signature(make).parameters][len(given) :] if name not in others]
        found = {name: value for name in names if (value := self._value(prefix + name)) is not _NONE}
        return make(*given, **found, **others)

    def _value(self, name: str) -> Any:
        if hasattr(self, name) or not name.endswith("_s"):
            return getattr(self, name, _NONE)
        units = ((name.removesuffix("_s") + unit, rate) for unit, rate in _SECONDS.items())
        return next((getattr(self, key) * times / by for key, (times, by) in units if hasattr(self, key)), _NONE)

    @model_validator(mode="before")
    @classmethod
    def _commented_out(cls, value: Any) -> Any:
        # A section whose keys are all commented out is null in YAML.
        return {} if value is None else value


def key(default: Any, about: str = "", **bounds: Any) -> Any:
    """A field: its default (``...``: it must be given), what the reference says of it (or the docstring below it, where
    that is too long for its line), and its bounds as ``Field`` has them."""
    return Field(default, description=about or None, **bounds)


def secret(about: str = "") -> Any:
    """A field of a secret that is not set."""
    return key(SecretStr(""), about)


def in_variable(name: str) -> Any:
    """A field that names the environment variable which holds another one of the section."""
    return key("", f"environment variable that holds {name}")


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of ``host:port``; an IPv6 host without its brackets. Raises ValueError."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch(_LOOKS["address"][0]["is"], address) or int(port) > PORT_MAX:
        raise ValueError("not host:port")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. A name other than ``localhost`` is not believed to be local."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(reason: str, remedy: str) -> PydanticCustomError:
    """``reason`` says what is wrong, ``remedy`` what would be right."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "remedy": remedy})


def _like(*kinds: str, or_empty: bool = False) -> AfterValidator:
    """A text that passes the checks of these kinds."""
    checks = [check for kind in kinds for check in _LOOKS[kind]]

    def looked_at(text: str) -> str:
        for check in checks if text or not or_empty else ():
            if not _passes(check, text):
                raise _refusal(check["reason"], check["remedy"])
        return text

    return AfterValidator(looked_at)


def _passes(check: Mapping[str, str], text: str) -> bool:
    if "is" in check:
        return re.fullmatch(check["is"], text) is not None
    if "has_no" in check:
        return re.search(check["has_no"], text) is None
    found = re.match(check["port"], text)
    return found is None or (len(found["port"]) <= 5 and int(found["port"]) <= PORT_MAX)


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise _refusal("contains a control or invisible character", "write it on one line, without tabs")
    return text


def _secret_line(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        reason = "contains a space, a line end or a non-ASCII character"
        raise _refusal(reason, "give the secret alone, without a line end")
    return value


def _metadata_path(path: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) == 1:
        raise _refusal("names a namespace and no value in it", "write for example [security.filter, blocked], or []")
    return path


def _unix_socket(path: str) -> str:
    size = len(os.fsencode(_one_line(path)))
    if size > UNIX_SOCKET_BYTES_MAX:
        reason = f"is {size} bytes long; the system takes {UNIX_SOCKET_BYTES_MAX}"
        raise _refusal(reason, "use a shorter path, for example /run/semmem.sock")
    return path


def _list_to_tuple(value: Any) -> Any:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else value


Element = TypeVar("Element")
ListOf = Annotated[tuple[Element, ...], BeforeValidator(_list_to_tuple)]
"""A YAML list, kept as a tuple so that settings are frozen all the way down. Null means empty."""

Short = Annotated[str, Field(max_length=1024)]
Line = Annotated[Short, AfterValidator(_one_line)]
NonEmptyLine = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_one_line)]
Prose = Annotated[str, Field(max_length=4000)]
_redacted = PlainSerializer(lambda secret: REDACTED if secret else "", when_used="json")
Secret = Annotated[SecretStr, Field(max_length=4096), AfterValidator(_secret_line), _redacted]
Address = Annotated[str, _like("port_of_address", "address")]
MilvusAddress = Annotated[Short, _like("port_of_address", "port_of_url", "milvus_address")]
QdrantAddress = Annotated[Short, _like("port_of_address", "port_of_url", "qdrant_address")]
JournalUrl = Annotated[Short, _like("journal_url")]
RedisUrl = Annotated[Short, _like("redis_url")]
HttpUrl = Annotated[Short, _like("port_of_url", "http_url")]
UrlPath = Annotated[Short, _like("url_path")]
ApiPath = Annotated[Short, _like("api_path")]
HeaderName = Annotated[str, _like("header_name")]
"""Any, one that carries credentials too."""
Header = Annotated[str, _like("header_name", "header_of_an_id")]
TrustedHeader = Annotated[str, _like("header_of_a_gateway", "header_name", "header_of_an_id")]
HeaderOrNone = Annotated[str, _like("header_name", "header_of_an_id", or_empty=True)]
HostName = Annotated[str, _like("host_name")]
Origin = Annotated[str, _like("origin")]
MetadataPath = Annotated[ListOf[NonEmptyLine], AfterValidator(_metadata_path)]
UnixSocket = Annotated[str, AfterValidator(_unix_socket)]
Identifier = Annotated[str, _like("identifier")]
VariableName = Annotated[str, _like("variable_name")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Milliseconds = Annotated[int, Field(ge=1, le=60_000)]
Days = Annotated[int, Field(ge=0, le=36_500)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Port = Annotated[int, Field(ge=1, le=PORT_MAX)]
