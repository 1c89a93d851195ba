"""The live /metrics page: every line can be parsed, and nobody is on it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.support.harness import House, eventually

WORDS = ("Zanzibar", "xylophone", "quokka")


def test_metrics_can_be_parsed_and_name_nobody(home: House, alice: str, bob: str) -> None:
    session, project = f"session-{alice}", f"project-{alice}"
    ids = {"x-project-id": project, "x-agent-id": f"agent-{alice}"}
    home.chat(alice, "My favourite island is Zanzibar.", session=session, stream=True, headers=ids)
    home.chat(alice, "I play the xylophone.", session=session, headers=ids)
    home.learnt(alice)
    memory = home.semmem.remember(bob, "My pet is a quokka")
    assert home.chat(bob, "What is my pet?").outcome == "injected"
    home.chat(None, "Hello!")

    text = home.semmem.metrics_text()

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"semmem_requests", "llm_memory_turns", "llm_memory_extraction", "llm_memory_retrieval"} <= families.keys()
    assert {"semmem_build_info", "process_resident_memory_bytes", "process_cpu_seconds"} <= families.keys()
    assert not any(name.endswith("_created") for name in families)
    secrets = [alice, bob, session, project, memory["id"], "demo-", *WORDS]
    assert [secret for secret in secrets if secret.lower() in text.lower()] == []


def test_every_exchange_is_counted_once_by_its_outcome(home: House, alice: str) -> None:
    before = home.semmem.metric("semmem_requests_total")
    anonymous = home.semmem.metric("semmem_requests_total", outcome="anonymous")
    closed = home.semmem.metric("llm_memory_turns_total", status="answered")

    home.chat(alice, "Where do I live?")
    home.chat(alice, "Where do I work?", stream=True)
    home.chat(None, "Where do I live?")

    # An exchange is counted when its answer to Envoy is on the way, which a quick model can overtake.
    eventually(lambda: home.semmem.metric("semmem_requests_total") >= before + 3, within_s=60, what="all are counted")
    assert home.semmem.metric("semmem_requests_total") == before + 3
    assert home.semmem.metric("semmem_requests_total", outcome="anonymous") == anonymous + 1
    eventually(
        lambda: home.semmem.metric("llm_memory_turns_total", status="answered") == closed + 2,
        within_s=60,
        what="both answers are counted",
    )


def test_probes_and_metrics_need_no_token_and_the_api_does(home: House, alice: str) -> None:
    assert home.http.get(f"{home.semmem.health_url}/healthz").status_code == 200
    assert home.http.get(f"{home.semmem.health_url}/readyz").status_code == 200
    assert home.http.get(f"{home.semmem.api_url}/v1/memory", params={"user_id": alice}).status_code == 401
    assert home.http.get(f"{home.semmem.api_url}/metrics").status_code in (401, 404)


def test_the_log_names_nobody_and_quotes_nothing(home: House, alice: str) -> None:
    home.chat(alice, "My favourite island is Zanzibar.")
    home.learnt(alice)

    log = home.semmem.child.printed()

    assert [secret for secret in (alice, "Zanzibar") if secret in log] == []


def test_a_round_trip_asks_the_embedder_and_not_what_is_kept_of_it(home: House) -> None:
    def asked() -> int:
        misses: int = home.semmem.api("GET", "/v1/status")["embedding"]["cache"]["misses"]
        return misses

    before = asked()
    for _ in range(2):
        assert home.semmem.api("GET", "/v1/health")["working"]
    assert asked() >= before + 2
