"""The ``semmem`` command: serve, check, calibrate, model, memories, preview, forget; the rest is in cli_*."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from semmem import __version__, cli_copies, cli_operating
from semmem.config import ConfigError, Problem, Settings, examine, load, remarks
from semmem.request.identity import user_of_key
from semmem.retrieval.decide.trained import Trained, UnusableWeights
from semmem.retrieval.index.sizes import advice
from semmem.telemetry.log_lines import logging_to_stderr

EXIT_FAILED = 1
EXIT_BAD_CONFIG = 2
EXIT_INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""


Read = Callable[[], tuple[Settings | None, list[Problem]]]


class Hangups:
    """SIGHUP asks for the configuration to be read again, and never ends the process: what comes before there is
    anybody to ask is kept, what comes after is dropped."""

    def __init__(self) -> None:
        self._ask: Callable[[], object] | None = None
        self._early = False
        signal.signal(signal.SIGHUP, self._heard)

    def tell(self, loop: asyncio.AbstractEventLoop, ask: Callable[[], None]) -> None:
        """Call ``ask`` for each one, and once for those that came before."""
        self._ask = partial(loop.call_soon_threadsafe, ask)
        if self._early:
            ask()

    def end(self) -> None:
        """The interpreter takes its own handlers back before it ends."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, _number: int, _frame: object) -> None:
        if self._ask is None:
            self._early = True
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._ask()


class NoUser(Exception):
    """The API key does not lead to a user. The message is for the person at the terminal."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; its exit status: 0 done, 1 failed, 2 the configuration or the arguments are wrong."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    command: str | None = arguments.command
    if command is None:
        parser.print_help(sys.stderr)
        return EXIT_BAD_CONFIG
    if command == "serve":
        return _serve(arguments.config)
    if command == "check":
        return _check(arguments.config, here=not arguments.elsewhere)
    if command == "calibrate":
        return _calibrate(arguments.config, arguments.out)
    if command == "model":
        return _export(arguments)
    if command in cli_copies.COMMANDS:
        return cli_copies.run(arguments)
    if command in cli_operating.COMMANDS:
        return cli_operating.run(arguments)
    return _ask(arguments, {"memories": _memories, "preview": _preview, "forget": _forget}[command])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="semmem", description="Long-term memory per user, beside Envoy.", epilog=_first_steps()
    )
    parser.add_argument("--version", action="version", version=f"semmem {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the sidecar until SIGTERM")
    serve.add_argument("--config", type=Path, default=None, help="config.yaml; without it every default applies")
    checked = commands.add_parser("check", help="say what is wrong with a configuration; exit status 2 if anything is")
    checked.add_argument("config", type=Path)
    checked.add_argument(
        "--elsewhere", action="store_true", help="it is used on another machine: leave out folders and the model"
    )
    calibrate = commands.add_parser(
        "calibrate", help="learn which memories a request needs, for the configured embedding model (signals.weights)"
    )
    calibrate.add_argument("--config", type=Path, default=None, help="config.yaml that names the embedding model")
    calibrate.add_argument("--out", type=Path, required=True, help="file to write")
    models = commands.add_parser("model", help="embedding models: export")
    exporting = models.add_subparsers(metavar="ACTION", required=True).add_parser(
        "export", help="write a model for ONNX Runtime, which semmem then serves it with; needs the package onnx"
    )
    exporting.add_argument("--model", default=None, help="name or directory; without it the configured one")
    exporting.add_argument("--int8", action="store_true", help="in 8 bits (memory.embedding.precision)")
    exporting.add_argument("--config", type=Path, default=None, help="config.yaml that names model and folder")
    memories = commands.add_parser("memories", help="what a running semmem has stored for a user, newest first")
    _add_whose(memories)
    memories.add_argument("--limit", type=int, default=20, help="most memories, 1 to 1000")
    preview = commands.add_parser("preview", help="what a running semmem would recall for a question, and why")
    preview.add_argument("question")
    _add_whose(preview)
    preview.add_argument("--strategy", choices=("hybrid", "semantic", "keyword", "recent"), default=None)
    preview.add_argument("--limit", type=int, default=None, help="most memories, 1 to 50")
    forget = commands.add_parser("forget", help="have a running semmem forget a user, or a user's project")
    _add_whose(forget)
    forget.add_argument("--project", default=None, help="only those of this project")
    forget.add_argument("--purge", action="store_true", help="and rewrite the files, so that the disk forgets too")
    cli_operating.add_commands(commands)
    cli_copies.add_commands(commands)
    return parser


def _add_whose(command: argparse.ArgumentParser) -> None:
    """The arguments of every command that asks a running semmem about one user."""
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--user", help="whose memories and turns")
    whose.add_argument(
        "--api-key-env", metavar="VARIABLE", help="those of the API key in this environment variable (identity.api_key)"
    )
    command.add_argument("--config", type=Path, default=None, help="config.yaml of the running semmem")
    command.add_argument("--api", default=None, help="its API's URL, when that is not where the configuration says")


def _first_steps() -> str:
    settings = Settings()
    at = settings.listeners
    return (
        f"Without a configuration, `semmem serve` listens on {at.grpc.address} for Envoy, {at.api.address} (management"
        f" API) and {at.health.address} (health, metrics), and keeps everything in {settings.data_dir}."
        " docs/configuration.md lists every key."
    )


def _check(path: Path, *, here: bool) -> int:
    settings, problems = _examined(path, here=here)
    for problem in problems:
        print(problem, file=sys.stderr)
    if settings is not None and not problems:
        for remark in remarks(settings, os.environ, here=here):
            print(f"{path}: {remark}")
        print(f"{path}: {advice(settings.memory.hot_cache.bytes_max, settings.memory.embedding.dimension)}")
    print(f"{path}: {f'{len(problems)} problem(s)' if problems else 'ok'}")
    return EXIT_BAD_CONFIG if problems else 0


def _examined(path: Path | None, *, here: bool) -> tuple[Settings | None, list[Problem]]:
    """The settings and every problem; ``here``: also with what the configuration names on this machine."""
    settings, problems = examine(path, os.environ, here=here)
    if here and settings is not None and not problems and (weights := settings.signals.weights):
        try:
            Trained.load(Path(weights))
        except UnusableWeights as unusable:
            remedy = "write it with semmem calibrate, or leave it empty"
            problems = [Problem("signals.weights", "", str(unusable), remedy)]
    return settings, problems


def _calibrate(path: Path | None, out: Path) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.calibration import NotCalibrated, calibrate  # imports every backend: not for `check`

    try:
        asyncio.run(calibrate(load(path, os.environ), out, lambda line: print(line, file=sys.stderr)))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    except (EmbedderError, NotCalibrated) as error:
        print(f"not calibrated: {error}", file=sys.stderr)
        return EXIT_FAILED
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.embedding import export_model  # imports every embedder: not for `check`

    try:
        settings = load(arguments.config, os.environ)
        model = arguments.model or settings.memory.embedding.model
        signature, folder = export_model(settings, model=model, precision="int8" if arguments.int8 else "fp32")
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    except (EmbedderError, OSError) as error:
        print(f"not exported: {error}", file=sys.stderr)
        return EXIT_FAILED
    print(f"{signature}: {folder}")
    return 0


def _ask(arguments: argparse.Namespace, question: Callable[[str, str, str, argparse.Namespace], int]) -> int:
    """Ask a running semmem. ``question`` is given its API's URL, the admin token, the user, and the arguments."""
    try:
        settings = load(arguments.config, os.environ)
        user = arguments.user if arguments.api_key_env is None else _user_of(arguments.api_key_env, settings)
    except (ConfigError, NoUser) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    api = settings.listeners.api
    return question(arguments.api or f"http://{api.address}", api.admin_token.get_secret_value(), user, arguments)


def _user_of(variable: str, settings: Settings) -> str:
    """The user of the API key in an environment variable. Raises NoUser."""
    rules = settings.identity.api_key
    if not rules.enabled:
        raise NoUser("identity.api_key.enabled is false: API keys are no users in this configuration")
    if not (key := os.environ.get(variable, "").strip()):
        raise NoUser(f"the environment variable {variable} holds no API key")
    return user_of_key(rules.hmac_secret.get_secret_value().encode(), key)


def _memories(url: str, token: str, user: str, arguments: argparse.Namespace) -> int:
    from semmem.management.commands import memories

    return memories(url, token, user, limit=arguments.limit)


def _preview(url: str, token: str, user: str, arguments: argparse.Namespace) -> int:
    from semmem.management.commands import preview

    asked = {"query": arguments.question, "user_id": user}
    asked |= {name: value for name in ("strategy", "limit") if (value := getattr(arguments, name)) is not None}
    return preview(url, token, asked)


def _forget(url: str, token: str, user: str, arguments: argparse.Namespace) -> int:
    from semmem.management.commands import forget

    asked = {"user_id": user} | ({"project_id": arguments.project} if arguments.project else {})
    asked |= {"purge": "true"} if arguments.purge else {}
    return forget(url, token, asked)


def _serve(path: Path | None) -> int:
    hangups = Hangups()
    settings, problems = _examined(path, here=True)
    if settings is None or (problems and settings.log.format != "json"):
        print(ConfigError(problems), file=sys.stderr)
        return EXIT_BAD_CONFIG
    with logging_to_stderr(as_json=settings.log.format == "json", level=settings.log.level) as say:
        if problems:
            for problem in problems:
                logging.getLogger("semmem").critical("the configuration: %s", problem)
            return EXIT_BAD_CONFIG
        logging.getLogger("semmem").info(
            "semmem %s starts with %s; its data is in %s; loading takes seconds",
            __version__,
            path or "the defaults, because no --config names a file",
            Path(settings.data_dir).resolve(),
        )
        return _run(settings, partial(_examined, path, here=True), hangups, say)


def _run(settings: Settings, read: Read, hangups: Hangups, say: Callable[[str], None]) -> int:
    # Children are started by exec alone; gRPC's care for forks would print a line about each of them.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        import uvloop  # a faster event loop where it exists; nothing depends on it

        uvloop.run(_serve_until_told(settings, read, hangups, say))
    except KeyboardInterrupt:  # before anything was there to stop; the interpreter would print a trace
        logging.getLogger("semmem").warning("interrupted before it was ready")
        return EXIT_INTERRUPTED
    except Exception as error:
        logging.getLogger("semmem").critical("cannot go on: %s", error, exc_info=settings.log.level == "debug")
        return EXIT_FAILED
    finally:
        hangups.end()
    return 0


async def _serve_until_told(settings: Settings, read: Read, hangups: Hangups, say: Callable[[str], None]) -> None:
    from semmem.wiring.app import App  # imports every backend: not for `check`

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    app = App(settings, read)
    hangups.tell(loop, app.reload_soon)
    async with app.running() as addresses:
        say(f"semmem ready grpc={addresses.grpc} api={addresses.api} health={addresses.health}")
        await app.until(stop)
