"""semmem: long-term memory per user for any OpenAI-compatible model behind Envoy."""

__version__ = "0.1.0"
