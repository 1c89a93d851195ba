"""One HTTP exchange: the order of its steps, and where optional features take part in it."""

from semmem.exchange.exchange import Exchange as Exchange
from semmem.exchange.features import Feature as Feature
from semmem.exchange.features import RequestResult as RequestResult
