"""Settings -> statistics of use: what records them, and what the API shows of them."""

from __future__ import annotations

import time
from decimal import Decimal

from semmem.background.writers import UsageRetention, UsageWriter
from semmem.config.settings import Settings
from semmem.management.usage_api import Usage
from semmem.ports.usage import UsageRecords, user_name
from semmem.usage.meter import KnownNames, Meter
from semmem.usage.report import Price, Prices, UsageReport


class Recording:
    """What stays as long as the process: rows that wait, names of the day, the key of digests."""

    def __init__(self, settings: Settings, records: UsageRecords) -> None:
        rules = settings.usage
        self.enabled = rules.enabled
        self.records = records
        self.writer = UsageWriter(
            records,
            rules.fill(UsageRetention),
            full=rules.flush_rows,
            interval_s=rules.flush_s,
            queue_max=rules.queue_max,
        )
        self._names = KnownNames(rules.names_max)
        self._key: bytes | None = None

    async def key(self) -> bytes:
        """Raises JournalError."""
        if self._key is None:
            self._key = await self.records.usage_key()
        return self._key

    async def begin(self) -> None:
        """Before requests come. Raises JournalError."""
        if self.enabled:
            await self.key()

    def feature(self, settings: Settings) -> Meter | None:
        """None where nothing is recorded."""
        if not self.enabled or self._key is None:
            return None
        return Meter(self._key, prices(settings), self._names, self.writer.add)

    def shown(self, settings: Settings) -> Usage:
        return Usage(
            UsageReport(self.records, prices(settings)),
            self._name,
            self.writer.flush,
            time.time,
            self.enabled,
        )

    async def _name(self, user: str) -> str:
        return user_name(await self.key(), user)


def prices(settings: Settings) -> Prices:
    rules = settings.usage
    table = [
        Price(each.model, each.provider, Decimal(str(each.input_per_million)), Decimal(str(each.output_per_million)))
        for each in rules.prices
    ]
    return Prices(table, compared_with=rules.compared_with, currency=rules.currency)
