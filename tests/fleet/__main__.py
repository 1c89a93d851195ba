"""``python -m tests.fleet [--conversations 200] [--turns 30] [--seed N] [--turns-per-s 15] [--lite] [--keep FOLDER]``

Exit status 1 when something accepted was lost or doubled, a client had another answer than the model's, something
erased came back, a full search did not find what was told, or a replica did not know what the other one knew.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo.processes import signals_raise
from tests.canary.__main__ import counted, shown
from tests.fleet.alternation import Trials
from tests.fleet.plan import Size
from tests.fleet.promises import Promise, promises
from tests.fleet.report import Report
from tests.fleet.run import play
from tests.fleet.stack import Parts
from tests.support.harness import BAG_OF_WORDS, SHIPPED_EMBEDDER


def main() -> int:
    options = _options()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    size = Size(options.conversations, options.turns, options.clients, options.turns_per_s)
    parts = Parts(
        BAG_OF_WORDS if options.bag_of_words else SHIPPED_EMBEDDER,
        lite=options.lite,
        own_journals=options.own_journals,
        staleness_s=options.staleness_s,
        replicas=options.replicas,
    )
    trials = (
        Trials(options.trials, max(1, options.trials // 6), max(1, options.trials // 3)) if options.trials else None
    )
    pace = f"{size.turns_per_s:g} turns a second at most" if size.turns_per_s else "as many turns as come"
    print(f"fleet: seed {seed}, {size.users} users, {size.clients} clients, {pace}", flush=True)
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-fleet-") as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        report = play(folder, parts, size, seed, trials, options.stop_s, lambda line: print(line, flush=True))
    made = promises(report)
    print(summary(report, made))
    return 1 if any(promise.broken for promise in made) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description=__doc__)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=30, help="of each conversation")
    parser.add_argument("--clients", type=int, default=12, help="requests at the same time")
    parser.add_argument(
        "--turns-per-s", type=float, default=15.0, help="of all clients; 0: as many as come, and learning falls behind"
    )
    parser.add_argument("--seed", type=int, default=None, help="what users do and say; chosen and shown by default")
    parser.add_argument("--trials", type=int, default=120, help="answers under strict alternation; 0: none of it")
    parser.add_argument("--stop-s", type=float, default=30.0, help="how long the store is stopped; 0: not at all")
    parser.add_argument("--replicas", type=int, default=2, help="1 shows what the driver itself sees")
    parser.add_argument("--lite", action="store_true", help="one Milvus Lite for both, in place of a Milvus server")
    parser.add_argument("--own-journals", action="store_true", help="a SQLite journal of each replica: this must fail")
    parser.add_argument("--bag-of-words", action="store_true", help="an embedder that starts at once")
    parser.add_argument("--staleness-s", type=float, default=None, help="memory.hot_cache.staleness_s of both")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    return parser.parse_args()


def summary(report: Report, shown_of_each: Sequence[Promise]) -> str:
    """What was seen; its last line has the figures."""
    verdict, recall, tally = report.verdict, report.recall, report.tally
    lost, doubled, errors, returned = report.figures
    rate = verdict.turns / report.seconds if report.seconds else 0.0
    return "\n".join(
        [
            f"outcomes   {counted(tally.outcomes)}",
            f"API        asked for again later {counted(tally.later) or 'nothing'}; interrupted {tally.interrupted}",
            f"turns      {verdict.accepted} accepted of users who erased nothing, and {verdict.waited} that waited for"
            f" a server in a replica that was killed; {report.seconds:.0f} s, {rate:.0f} a second",
            f"answers    {verdict.answers_in_flight} lost in flight at the kill,"
            f" {verdict.answers_unwritten} on their way to the journal,"
            f" {verdict.answers_unnoticed} in the second after it, {verdict.answers_unseen} failed open;"
            f" {report.unlearnt} turns not learnt from",
            f"facts      {verdict.facts} that must be there, {len(verdict.superseded)} superseded;"
            f" {report.erased} erased, asked for {report.asked_for_erased} times in the end",
            f"recall     {recall.right} of {recall.asked} right, {recall.failed_open} failed open"
            f" ({recall.failed_open / max(1, recall.asked):.1%}), {recall.early} asked too early,"
            f" {len(recall.late)} not learnt yet, {len(recall.missed) - len(recall.wrong)} superseded,"
            f" {len(recall.wrong)} wrong;"
            f" {recall.gone} asked for something erased",
            f"Envoy      streams that failed open {report.passed}",
            *([f"alternate  {report.alternated}"] if report.alternated else []),
            *(str(promise) for promise in shown_of_each),
            *(line for promise in shown_of_each for line in shown(promise.name.upper(), promise.broken)),
            f"fleet: {verdict.turns} turns, {lost} lost, {doubled} doubled, {errors} client errors,"
            f" {returned} erased came back",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
