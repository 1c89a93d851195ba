"""LiteLLM's SDK in a server of your own, which has signed its user in and says so to Envoy."""

from __future__ import annotations

import argparse
import os

import litellm

HEADER = "x-litellm-user"
"""In ``identity.trusted_headers`` of semmem's configuration. Only this server may reach that Envoy."""


def answer(text: str, *, user: str, session: str, model: str, stream: bool = False) -> str:
    """One turn. ``user`` is whoever this server has signed in, and never what a client says of itself."""
    told = litellm.completion(
        model=f"openai/{model}",
        api_base=os.environ["SEMMEM_ENVOY"],
        api_key=os.environ["MODEL_KEY"],
        messages=[{"role": "user", "content": text}],
        extra_headers={HEADER: user, "x-session-id": session},
        stream=stream,
    )
    if stream:
        return "".join(part.choices[0].delta.content or "" for part in told)
    return str(told.choices[0].message.content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="what the user says")
    parser.add_argument("--user", required=True, help="whom this server has signed in")
    parser.add_argument("--session", required=True, help="the conversation: any name, another one for each")
    parser.add_argument("--model", default="your-model")
    parser.add_argument("--stream", action="store_true")
    options = vars(parser.parse_args())
    print(answer(options.pop("text"), **options))


if __name__ == "__main__":
    main()
