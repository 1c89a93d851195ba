"""What one run has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.canary.doors import Tally
from tests.canary.ledger import Findings
from tests.fleet.alternation import Alternated
from tests.fleet.clients import Recall
from tests.fleet.plan import Size
from tests.fleet.stalled import Stalled
from tests.fleet.verdict import Verdict


@dataclass(slots=True)
class Report:
    """``unlike``: what replicas list differently; ``histories``: of memories with too many versions; ``passed``:
    requests without semmem, by Envoy. ``alternated`` and ``stalled`` are None where that was left out."""

    size: Size
    tally: Tally
    findings: Findings
    verdict: Verdict
    recall: Recall
    alternated: Alternated | None = None
    stalled: Stalled | None = None
    seconds: float = 0.0
    erased: int = 0
    asked_for_erased: int = 0
    unlearnt: int = 0
    unlike: list[str] = field(default_factory=list)
    histories: list[str] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=dict)

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Lost, doubled, client errors, erased that came back."""
        verdict = self.verdict
        return len(verdict.lost), len(verdict.doubled), self.tally.failures, len(self.findings.returns)
