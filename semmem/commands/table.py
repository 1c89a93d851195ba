"""Every command, in the order in which help shows them, and the parser of them all."""

from __future__ import annotations

from functools import cache

from semmem import __version__
from semmem.commands import conversing, copies, doctor, forgetting, memories, models, operating, serving
from semmem.commands.command import Command, Parser, argument
from semmem.commands.completion import completion_command
from semmem.commands.manual import help_command, page_of, text
from semmem.config import Settings


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


@cache
def root_parser() -> Parser:
    """Of ``semmem`` itself."""
    return Parser(ROOT, "semmem", lambda parser: text(page_of(parser)))


COMMANDS = (
    serving.SERVE,
    serving.CHECK,
    serving.DEMO,
    memories.PREVIEW,
    memories.LIST,
    memories.SHOW,
    memories.ADD,
    forgetting.FORGET,
    conversing.CONVERSATIONS,
    copies.EXPORT,
    copies.IMPORT,
    copies.BACKUP,
    copies.RESTORE,
    copies.ERASURES,
    copies.JOURNAL,
    models.REINDEX,
    models.CALIBRATE,
    models.MODEL,
    operating.TOKEN,
    operating.USERS,
    operating.SWITCHES,
    operating.STATUS,
    doctor.DOCTOR,
    serving.MCP,
    completion_command(lambda: root_parser()),
    help_command(lambda: root_parser()),
)
ROOT = Command(
    name="semmem",
    does="long-term memory per user, beside Envoy",
    about=_about(),
    arguments=(
        argument("--version", action="version", version=f"semmem {__version__}", help="print the version, and end"),
    ),
    inside=COMMANDS,
)
