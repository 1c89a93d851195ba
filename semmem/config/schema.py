"""The schema, looked up: which keys exist, what they hold, and which one was probably meant."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from semmem.config.problems import Loc
from semmem.config.settings import Settings
from semmem.config.values import Section

_NUMBER_OR_NONE = {int | None: int, float | None: float}


def item_type(annotation: Any) -> Any:
    """What a list of this type holds, or None when it is no list."""
    if get_origin(annotation) is not tuple:
        return None
    item = get_args(annotation)[0]
    return get_args(item)[0] if get_origin(item) is Annotated else item


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def type_at(loc: Loc) -> Any:
    """The type of the value at a place, or None when the schema has no such place."""
    annotation: Any = Settings
    for part in loc:
        if isinstance(part, int):
            annotation = item_type(annotation)
        elif is_section(annotation) and part in annotation.model_fields:
            annotation = annotation.model_fields[part].annotation
        else:
            return None
    return annotation


def field_at(loc: Loc) -> FieldInfo | None:
    """The field at a place; of a list's element, the list's field."""
    keys = loc
    while keys and isinstance(keys[-1], int):
        keys = keys[:-1]
    section: Any = type_at(keys[:-1]) if keys else None
    return section.model_fields.get(keys[-1]) if is_section(section) else None


class Leaf(NamedTuple):
    """A key that holds a value, as its section declares it; ``N`` in its path stands for a list index."""

    path: tuple[str, ...]
    field: FieldInfo
    section: type[Section]


def leaves(section: type[Section] = Settings, at: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every key, in order: what the reference, names of variables, and reasons for restarts are made of."""
    for name, field in section.model_fields.items():
        item: Any = item_type(field.annotation)
        if not is_section(field.annotation):
            yield Leaf((*at, name), field, section)
        if is_section(inner := item or field.annotation):
            yield from leaves(inner, (*at, name, "N") if item else (*at, name))  # type: ignore[arg-type]


def restart_reasons() -> Mapping[str, str]:
    """Every key, dotted: why a running semmem does not take up another value; an empty text: it does."""
    return {".".join(leaf.path): leaf.section.restart_reason(leaf.path[-1]) for leaf in leaves()}


def describe(loc: Loc) -> str:
    """What belongs at a place, in words: ``a whole number from 1 to 50``."""
    field = field_at(loc)
    if field is None or isinstance(loc[-1], int):
        return _type_words(type_at(loc))
    return describe_field(field)


def describe_field(field: FieldInfo) -> str:
    """A field's type and bounds in words."""
    words = _type_words(field.annotation)
    bounds = {
        name: getattr(constraint, name)
        for constraint in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(constraint, name)
    }
    if "le" not in bounds:
        return words
    low = f"above {bounds['gt']}" if "gt" in bounds else f"from {bounds['ge']}"
    or_null = ", or null" if field.annotation in _NUMBER_OR_NONE else ""
    return f"{words} {low} to {bounds['le']}{or_null}"


def nearest_key(loc: Loc) -> str:
    """What a key that does not exist was probably meant to be."""
    section, name = type_at(loc[:-1]), str(loc[-1])
    known = list(section.model_fields) if is_section(section) else []
    prefix = "".join(f"{part}." for part in loc[:-1])
    here = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if here:
        return f"did you mean {prefix}{here[0]}?"
    prefixes = (leaf.path[:length] for leaf in leaves() for length in range(1, len(leaf.path) + 1))
    everywhere = [".".join(path) for path in dict.fromkeys(prefixes) if path[-1] != "N"]  # sections and leaves alike
    same_name = [path for path in everywhere if path.rpartition(".")[2] == name]
    near = same_name[:1] or difflib.get_close_matches(f"{prefix}{name}", everywhere, n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def _type_words(annotation: Any) -> str:
    item = item_type(annotation)
    if item is not None:
        return "a list of sections" if is_section(item) else "a list of text"
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    if is_section(annotation):
        return "a section"
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text", SecretStr: "text"}
    return kinds[_NUMBER_OR_NONE.get(annotation, annotation)]
