"""What every command of commands.toml does, and the parser of them all; with ``semmem completion``, whose
scripts are made from that parser and hold all of it, so that a shell asks nobody at every key."""

import argparse
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from semmem import __version__
from semmem.commands import doctor, memories, operating, serving
from semmem.commands.asking import printing
from semmem.commands.command import Command, Parser, Run, declared
from semmem.commands.manual import found, page_of, roff, shown, text
from semmem.commands.terminal import answer
from semmem.config import Settings

# --- completion ------------------------------------------------------------------------------------------------------

FILES = "\0files"
"""In the place of words: any file."""


def _words(parser: Parser) -> list[str]:
    """What may stand where no option waits for its value."""
    options = [name for action in parser.shown_actions for name in action.option_strings if name.startswith("--")]
    values = [word for action in parser.shown_actions if not action.option_strings for word in _values(action)]
    return [*parser.named, *values, *options]


def _values(action: argparse.Action) -> Sequence[str]:
    """What an argument or option may be: words, FILES, or nothing that is known."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return [FILES] if action.type is Path else []


# --- bash and zsh ----------------------------------------------------------------------------------------------------


def _posix(shell: str, root: Parser) -> str:
    """Both walk the words before the cursor from command to command, and then look one place up."""
    steps = [f"{shlex.quote(step)}) place={shlex.quote(place)};;" for step, place in _steps(root)]
    return shell.replace("@STEPS@", _lines(steps)).replace("@PLACES@", _lines(_places(root)))


def _lines(found: Iterable[str]) -> str:
    return "\n".join(f"        {line}" for line in found)


def _steps(root: Parser) -> Iterator[tuple[str, str]]:
    """A place and a word behind it, and the place to which that leads."""
    for parser in root.everything:
        yield from ((f"{parser.prog} {name}", child.prog) for name, child in parser.named.items())


def _places(root: Parser) -> Iterator[str]:
    """Where an option waits for its value, and behind a command."""
    for parser in root.everything:
        for action in parser.shown_actions:
            if action.nargs != 0:
                options = (shlex.quote(f"{parser.prog}:{name}") for name in action.option_strings)
                yield from (f"{option}) {_assigned(_values(action))};;" for option in options)
        yield f"{shlex.quote(parser.prog)}:*) {_assigned(_words(parser))};;"


def _assigned(values: Sequence[str]) -> str:
    words = " ".join(word for word in values if word != FILES)
    return f"words={shlex.quote(words)} files={int(FILES in values)}"


_BASH = """\
# bash completion for semmem
_semmem() {
    local current=${COMP_WORDS[COMP_CWORD]} place=semmem words= files=0 word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$place $word" in
@STEPS@
        esac
    done
    case "$place:${COMP_WORDS[COMP_CWORD-1]}" in
@PLACES@
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ "$files" = 1 ]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$current"))
    fi
}
complete -F _semmem semmem
"""

_ZSH = """\
#compdef semmem
# zsh completion for semmem
_semmem() {
    local place=semmem found= files=0 words_before word
    words_before=("${(@)words[2,CURRENT-1]}")
    for word in "${words_before[@]}"; do
        case "$place $word" in
@STEPS@
        esac
    done
    local previous="${words[CURRENT-1]}" words=
    case "$place:$previous" in
@PLACES@
    esac
    found=(${=words})
    compadd -a found
    if [ "$files" = 1 ]; then _files; fi
}
if [ "$funcstack[1]" = "_semmem" ]; then _semmem "$@"; else compdef _semmem semmem; fi
"""


# --- fish ------------------------------------------------------------------------------------------------------------


def _fish(root: Parser) -> str:
    """What may stand at a place, a line each; a function walks to the place as in the other shells."""
    steps = [
        f"            case {_fished(step)}\n                set place {_fished(place)}" for step, place in _steps(root)
    ]
    return _FISH.replace("@STEPS@", "\n".join(steps)) + "".join(f"{line}\n" for line in _fish_lines(root))


_FISH = """\
# fish completion for semmem
function __semmem_at
    set -l place semmem
    for word in (commandline -opc)
        switch "$place $word"
@STEPS@
        end
    end
    test "$place" = "$argv"
end
complete -c semmem -f
"""


def _fished(words: str) -> str:
    """As one word of fish."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_lines(root: Parser) -> Iterator[str]:
    for parser in root.everything:
        where = _fished(f"__semmem_at {parser.prog}")
        for name, child in parser.named.items():
            yield f"complete -c semmem -n {where} -a {name} -d {_fished(child.command.does)}"
        for action in parser.shown_actions:
            yield from _fish_action(where, action)


def _fish_action(where: str, action: argparse.Action) -> Iterator[str]:
    values = _values(action)
    words = " ".join(word for word in values if word != FILES)
    wanted = " -F" if FILES in values else ""
    wanted += f" -a {_fished(words)}" if words else ""
    if not action.option_strings:
        if wanted:
            yield f"complete -c semmem -n {where}{wanted}"
        return
    needed = "" if action.nargs == 0 else " -r" if FILES in values else " -x"  # -x: no files, which -r alone offers
    for name in action.option_strings:
        spelt = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        yield f"complete -c semmem -n {where} {spelt}{needed}{wanted} -d {_fished(action.help or '')}"


SCRIPTS: Mapping[str, Callable[[Parser], str]] = {
    "bash": partial(_posix, _BASH),
    "zsh": partial(_posix, _ZSH),
    "fish": _fish,
}
"""What each shell is given."""


def complete(given: argparse.Namespace) -> int:
    script = SCRIPTS[given.shell](root_parser())
    answer(given, {"shell": given.shell, "script": script}, script.splitlines())
    return 0


def tell(given: argparse.Namespace) -> int:
    """``semmem help``: one command, or all of them."""
    parser = found(root_parser(), given.topic)
    pages = [page_of(each) for each in (parser.everything if parser.inside else [parser])]
    paper = roff(pages) if given.man else text(pages[0])
    answer(given, {"commands": [shown(page_of(each)) for each in parser.everything]}, paper.splitlines())
    return 0


# --- the table -------------------------------------------------------------------------------------------------------


def _about() -> str:
    at = Settings().listeners
    return (
        "Most commands ask a running semmem over its management API, and find it and its token by --config, --api and"
        " --token-env. The answer goes to standard output, as text or with --json; progress and errors go to standard"
        " error. With --json an error is one document as well: its code, path, reason and exit status."
        f"\n\nWithout a configuration, `semmem serve` listens on {at.grpc.address} for Envoy, {at.api.address}"
        f" (management API) and {at.health.address} (health, metrics), and keeps everything in {Settings().data_dir}."
        " docs/configuration.md lists every key."
    )


def _copying(name: str) -> Run:
    """A command of copies.py, which takes numpy along and is imported when one of them is called."""

    def run(given: argparse.Namespace) -> int:
        from semmem.commands import copies

        return copies.reported(getattr(copies, name), given)

    return run


RUNS: Mapping[str, Run] = {
    "serve": serving.serve,
    "check": serving.check,
    "demo": serving.demo,
    "preview": printing(memories.preview, memories.table),
    "list": memories.listed,
    "show": printing(memories.history, memories.shown_memory),
    "add": memories.add,
    "forget": memories.forget,
    "requests": printing(memories.requests, memories.shown_requests),
    "conversations list": printing(memories.conversations, memories.shown_conversations),
    "conversations show": printing(memories.conversation, memories.shown_conversation),
    "conversations export": memories.export_conversation,
    "conversations delete": printing(
        memories.delete_conversation, lambda gone: [f"{gone['messages']} messages deleted"]
    ),
    "export": _copying("export"),
    "import": _copying("take"),
    "backup": _copying("backup"),
    "restore": _copying("restore"),
    "erasures": _copying("known_erasures"),
    "journal recover": _copying("recover"),
    "journal import": _copying("adopt"),
    "reindex": operating.reindex,
    "calibrate": operating.calibrate,
    "model export": operating.export_model,
    "model show": operating.show_model,
    "token create": printing(operating.create, lambda made: [made["token"]]),
    "token list": printing(lambda api, _given: api.call("GET", "/v1/tokens"), operating.listed_tokens),
    "token revoke": printing(operating.revoke, lambda done: [f"{done['revoked']} revoked"]),
    "users": printing(operating.users, operating.shown_users),
    "alias": printing(operating.alias, operating.shown_alias),
    "switches": operating.switches,
    "status": printing(
        operating.status,
        operating.shown_status,
        lambda told: told.get("working") is False,
    ),
    "doctor": doctor.doctor,
    "mcp": serving.mcp,
    "completion": complete,
    "help": tell,
}
VERSION = {"name": "--version", "action": "version", "help": "print the version, and end"}


@cache
def root_parser() -> Parser:
    """Of ``semmem`` itself."""
    root = Command(
        name="semmem",
        does="long-term memory per user, beside Envoy",
        about=_about(),
        arguments=[VERSION | {"version": f"semmem {__version__}"}],
        inside=declared(RUNS),
    )
    return Parser(root, "semmem", lambda parser: text(page_of(parser)))
