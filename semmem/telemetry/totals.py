"""What a page of metrics says, read back: for whoever looks at a running semmem from outside."""

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families


def totals_of(page: str) -> dict[str, Counter[str]]:
    """The values of each name by its first label, without zeros; by "" where it has none. Raises ValueError
    for what is no page."""
    totals: dict[str, Counter[str]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            label = next(iter(sample.labels.values()), "")
            if sample.value:
                totals.setdefault(sample.name, Counter())[label] += int(sample.value)
    return totals
