"""The API of a running semmem, as somebody meets it who has no token."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit

import httpx

from tests.e2e.test_bounded_names import rss_mib
from tests.support.harness import ADMIN_TOKEN, IDENTITY_HEADERS, House

MIB = 1024 * 1024


def test_headers_that_envoy_sets_are_nobody_at_the_api(home: House, alice: str) -> None:
    home.semmem.remember(alice, "User likes green tea")
    for name in IDENTITY_HEADERS:
        for method in ("GET", "DELETE"):
            answer = home.semmem.http.request(method, f"{home.semmem.api_url}/v1/memory", headers={name: alice})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert home.semmem.contents(alice) == {"User likes green tea"}


def test_the_bare_address_leads_to_the_studio(home: House) -> None:
    answer = httpx.get(home.semmem.api_url + "/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/studio/")
    assert httpx.get(home.semmem.api_url + answer.headers["location"]).status_code == 200


def test_another_host_or_page_is_refused(home: House, alice: str) -> None:
    admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    url = f"{home.semmem.api_url}/v1/memory?user_id={alice}"
    assert home.semmem.http.get(url, headers=admin).status_code == 200
    assert home.semmem.http.get(url, headers=admin | {"host": "evil.example"}).status_code == 421
    assert home.semmem.http.get(url, headers=admin | {"origin": "https://evil.example"}).status_code == 403


def test_200_megabytes_of_nobody_disturb_nobody(home: House) -> None:
    where = urlsplit(home.semmem.api_url)
    pid = home.semmem.child.pid
    before_mib, peak_mib = rss_mib(pid), 0
    probed = 0
    answers: list[bytes] = []

    def pour() -> None:
        head = b"POST /v1/memory HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        with socket.create_connection((where.hostname, where.port), timeout=30) as sending:
            sending.sendall(head + b"content-length: %d\r\n\r\n" % (200 * MIB))
            try:
                for _ in range(200 * 16):
                    sending.sendall(b"[" * (MIB // 16))
            except ConnectionError:
                pass
            answers.append(sending.recv(4096))

    pouring = [threading.Thread(target=pour) for _ in range(8)]
    for each in pouring:
        each.start()
    with httpx.Client(trust_env=False) as probe:
        while any(each.is_alive() for each in pouring) or probed < 50:
            assert probe.get(f"{home.semmem.health_url}/healthz", timeout=30).status_code == 200
            probed += 1
            peak_mib = max(peak_mib, rss_mib(pid))
    for each in pouring:
        each.join()
    print(f"\nhealthz answered {probed} times, memory {peak_mib - before_mib:+} MiB")
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 401"] * 8
    assert peak_mib - before_mib < 100


def test_what_is_told_is_screened_and_counted(home: House, alice: str) -> None:
    new = {"user_id": alice, "content": "User's key is sk-abcdefghijklmnop1234567890"}
    admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    before = home.semmem.metric("semmem_api_screened_total", result="reject", reason="secret")
    answer = home.semmem.http.post(f"{home.semmem.api_url}/v1/memory", json=new, headers=admin)
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, "content: secret")
    assert home.semmem.metric("semmem_api_screened_total", result="reject", reason="secret") == before + 1
    assert home.semmem.contents(alice) == set()
