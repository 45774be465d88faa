"""Requests that are too many, too long, malformed, not allowed or given up, and devices that
fail."""

import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from serving import Gate, serving_text, wait_for
from support import raising

import vkrt
from vkrt.serve import service as services

CHAT = "/v1/chat/completions"
TURN = {"messages": [{"role": "user", "content": "w9 w10"}], "temperature": 0, "max_tokens": 6}


@pytest.fixture
def server(device, tmp_path):
    with serving_text(device, tmp_path, count=2, waiting=2, body=20_000) as running:
        yield running


@pytest.fixture
def gate(server, monkeypatch):
    return Gate(server.service.program, monkeypatch)


@pytest.fixture
def begin():
    """Begins a request in a thread of its own: what `Server.ask` returns, as a future."""
    with ThreadPoolExecutor(4) as pool:
        yield lambda server, **changes: pool.submit(server.ask, CHAT, {**TURN, **changes})


def sent(body, **headers):
    """The bytes of a request."""
    text = body if isinstance(body, str) else json.dumps(body)
    lines = [f"POST {CHAT} HTTP/1.1", "Host: localhost", f"Content-Length: {len(text)}",
             *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", text])


def idle(server):
    return server.service.turns.counts == (0, 0)


def works(server):
    """Whether an answer is the one that it always is."""
    status, _, answer = server.ask(CHAT, TURN)
    return status == 200 and answer["choices"][0]["message"]["content"] == "w58 w52 w6 w5 w5 w5"


def test_more_than_may_wait(server, gate, begin):
    first = [begin(server) for _ in range(2)]
    wait_for(lambda: server.service.turns.counts[0] == 2)
    waiting = [begin(server) for _ in range(2)]
    wait_for(lambda: server.service.turns.counts == (2, 2))
    status, headers, answer = server.ask(CHAT, TURN)
    assert status == 429 and headers["retry-after"] == "1"
    assert answer["error"]["code"] == "rate_limit_exceeded"
    status, _, metrics = server.ask("/metrics")
    assert b"vkrt_requests_running 2\n" in metrics and b"vkrt_requests_waiting 2\n" in metrics
    gate.open()
    assert [request.result()[0] for request in (*first, *waiting)] == [200] * 4
    assert works(server)
    wait_for(lambda: idle(server))


def test_a_job_more_than_the_running_ones_need_not_wait(device, tmp_path):
    """A queue of no length refuses what cannot begin at once, and nothing else."""
    with serving_text(device, tmp_path, count=1, waiting=0) as server:
        assert all(works(server) for _ in range(3))


def test_the_time_of_a_request(device, tmp_path, monkeypatch, begin):
    """What runs ends where it is, what waits is told."""
    with serving_text(device, tmp_path, count=1, seconds=0.5) as server:
        gate = Gate(server.service.program, monkeypatch)
        running = begin(server)
        wait_for(lambda: gate.begun)
        waiting, stream = begin(server), begin(server, stream=True)
        wait_for(lambda: server.service.turns.counts == (1, 2))
        threading.Event().wait(0.6)
        gate.open()
        (status, _, answer), (waited, _, refusal) = running.result(), waiting.result()
        assert status == 200 and waited == 503
        choice, = answer["choices"]
        assert choice["finish_reason"] == "length" and choice["message"]["content"] == ""
        assert "other requests took all the time" in refusal["error"]["message"]
        said = stream.result()[2]
        assert b'"error"' in said and b"[DONE]" not in said
        # The state of an answer that was cut off is as good as any.
        monkeypatch.undo()
        wait_for(lambda: idle(server))
        object.__setattr__(server.service.limits, "seconds", 60)
        assert works(server)


@pytest.mark.parametrize("changes", [{}, {"stream": True}])
def test_a_client_that_goes_away(server, gate, changes):
    """Nothing is done for it any more, whether it is answered or waits."""
    connections = [server.connect(sent({**TURN, **changes})) for _ in range(3)]
    wait_for(lambda: server.service.turns.counts == (2, 1))
    for connection in connections:
        connection.close()
    begun = gate.begun
    jobs = [*server.service.turns._running, *server.service.turns._waiting]
    wait_for(lambda: all(job.cancelled for job in jobs))
    gate.open()
    wait_for(lambda: idle(server))
    # Of the two that ran, one was at a run and one had at most begun one.
    assert gate.begun <= begun + 1
    assert works(server)


def test_a_client_that_reads_nothing(server):
    """It holds nobody up: the answer waits for it, the state does not."""
    connection = server.connect(sent({**TURN, "stream": True}))
    wait_for(lambda: server.service.conversations.totals["tokens"] == 6)
    assert works(server)
    connection.close()


@pytest.mark.parametrize(("body", "status", "message"), [
    (b"", 400, "not JSON"), (b"{", 400, "not JSON"), (b"\xff", 400, "not JSON"),
    (b"[" * 9000, 400, "not JSON"), (b"[]", 400, "not a JSON object"),
    (b"x" * 20_001, 413, "more than 20,000 bytes"),
    ({}, 400, "messages: expected at least one"), ({"messages": 3}, 400, "messages: expected an a"),
    ({"messages": [3]}, 400, "messages: expected objects"),
    ({"messages": [{"role": "owl", "content": "w1"}]}, 400, "no such role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "only parts"),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "not a text"),
    ({"messages": [{"role": "user", "content": " ".join(["w9"] * 30)}]}, 400, "has 33 tokens"),
    ({"model": "other"}, 404, "there is no model"), ({"model": 3}, 400, "model: expected a string"),
    ({"n": 2}, 400, "n: not supported"), ({"tools": [{}]}, 400, "tools: not supported"),
    ({"temperature": -1}, 400, "temperature=-1"), ({"temperature": "hot"}, 400, "a number"),
    ({"temperature": True}, 400, "a number"), ({"top_p": 0}, 400, "top_p=0"),
    ({"top_k": 1.5}, 400, "a whole number"), ({"max_tokens": 0}, 400, "1 or more"),
    ({"max_tokens": 10 ** 30}, 200, ""), ({"seed": -(10 ** 30)}, 200, ""),
    ({"top_k": 10 ** 30, "temperature": 1}, 200, ""), ({"user": {"x": 1}}, 200, ""),
    ({"stop": ["a"] * 17}, 400, "at most 16"), ({"stop": [""]}, 400, "none of them empty"),
    ({"stop": "x" * 10_000}, 200, ""), ({"stream": "yes"}, 400, "true or false"),
    ({"response_format": {"type": "xml"}}, 400, "'xml' is not supported")])
def test_malformed_requests(server, body, status, message):
    if isinstance(body, dict):
        body = {**({} if body == {} else TURN), **body}
    found, _, answer = server.ask(CHAT, body)
    assert found == status, answer
    assert status == 200 or message in answer["error"]["message"]
    assert works(server)


def test_prompts_that_are_none(server):
    for prompt in (None, [], "", 3, ["w1", "w2"], [[1], [2]], [1, 61], [1, -1], [1.5], [True]):
        status, _, answer = server.ask("/v1/completions", {"prompt": prompt})
        assert status == 400 and "prompt: " in answer["error"]["message"] or "no tokens" in (
            answer["error"]["message"]), answer
    assert works(server)


def test_bytes_that_are_no_request(server):
    for text in (b"\x16\x03\x01" + bytes(200), b"GET / HTTP/1.1\r\n\r\n", b"\0" * 1000,
                 b"POST " + b"/" * 200_000, sent(TURN, **{"Transfer-Encoding": "chunked"})):
        answer = b""
        # What comes behind an answer that closes the connection resets it.
        with suppress(OSError), server.connect(text) as connection:
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1000)
        assert not answer or answer.startswith(b"HTTP/1.1 4"), answer
    for path, method, status in (("/nothing", "GET", 404), (CHAT, "GET", 405),
                                 ("/v1/models", "POST", 405), ("/../etc/passwd", "GET", 404)):
        found, _, answer = server.ask(path, method=method)
        assert found == status and "message" in answer["error"]
    assert works(server)


def test_a_body_that_does_not_come(server, monkeypatch):
    """A client that is killed in the middle of a body, and one that is slow."""
    with server.connect(sent(TURN)[:-5]):
        pass
    monkeypatch.setattr(services, "BODY_SECONDS", 0.1)
    with server.connect(sent(TURN)[:-5]) as connection:
        assert b"408 Request Timeout" in connection.recv(1000)
    chunk = "\r\n".join(["1000", "x" * 0x1000, ""])
    start = sent("").replace("Content-Length: 0", "Transfer-Encoding: chunked")
    with server.connect(start + chunk * 6) as connection:
        assert b"413 " in connection.recv(1000)
    assert works(server)


def test_who_may_ask(device, tmp_path):
    """Somebody with the key; what says no more than that there is a server is open."""
    with serving_text(device, tmp_path, key="s\u00e9same") as server:
        for key, status in ((None, 401), ("Bearer wrong", 401), ("Bearer s\u00e9same", 200),
                            ("s\u00e9same", 200)):
            headers = {} if key is None else {"Authorization": key.encode()}
            assert server.ask("/v1/models", headers=headers)[0] == status
            assert server.ask("/metrics", headers=headers)[0] == status
            assert server.ask("/health", headers=headers)[0] == 200
        status, _, answer = server.ask(CHAT, TURN)
        assert status == 401 and answer["error"]["code"] == "invalid_api_key"
        assert server.ask("/")[0] == 200


def test_pages_of_other_sites(device, tmp_path):
    """Neither by their own name for this machine, nor from where they are."""
    with serving_text(device, tmp_path, hosts=("localhost", "127.0.0.1", "[::1]")) as server:
        here = f"127.0.0.1:{server.port}"
        for headers, status in (
                ({"Host": "evil.example"}, 400), ({"Host": "localhost:99"}, 200),
                ({"Host": "[::1]:99"}, 200), ({"Origin": "http://evil.example"}, 403),
                ({"Origin": "null"}, 403), ({"Origin": f"http://{here}"}, 200)):
            assert server.ask("/v1/models", headers=headers)[0] == status, headers


def test_a_run_that_fails(server, monkeypatch):
    """It fails one answer; the next one finds a state as good as new."""
    program = server.service.program
    run, first = program.run, program.load_method("forward")._loaded.state
    for fails in (1, 3):  # in the prompt, and in the middle of the text
        for stream in (False, True):
            left = [fails]

            def failing(*arguments, state=None, left=left, **further):
                left[0] -= 1
                if left[0] == 0:
                    (first if state is None else state.memory).inconsistent = True
                    raise vkrt.VulkanError("vkQueueSubmit failed")
                return run(*arguments, state=state, **further)

            monkeypatch.setattr(program, "run", failing)
            status, _, answer = server.ask(CHAT, {**TURN, "stream": stream})
            monkeypatch.undo()
            if stream:
                assert status == 200 and b"vkQueueSubmit failed" in answer
                assert b"[DONE]" not in answer
            else:
                assert status == 500 and answer["error"]["type"] == "server_error"
            assert works(server) and works(server)
    assert server.ask("/health")[::2] == (200, {"status": "ok"})


def test_a_device_that_is_lost(server, monkeypatch):
    monkeypatch.setattr(server.service.program, "run",
                        raising(vkrt.DeviceLostError, "the device was lost"))
    assert server.ask(CHAT, TURN)[0] == 500
    assert server.ask("/health")[::2] == (503, {"status": "the device was lost"})
    assert server.ask(CHAT, TURN)[0] == 503


def test_a_server_that_ends(server, gate, begin):
    """Whoever is answered, or waits, is told; nobody is waited for."""
    requests = [begin(server, stream=n % 2 == 0) for n in range(4)]
    wait_for(lambda: server.service.turns.counts == (2, 2) and gate.begun == 1)
    server.service.turns.end()
    gate.let()
    for stream in requests[::2]:
        status, _, said = stream.result()
        assert status == 200 and b"the server has ended" in said and b"[DONE]" not in said
    for whole in requests[1::2]:
        status, _, answer = whole.result()
        assert status == 503 and answer["error"]["message"] == "the server has ended"
    # Whoever comes now shall not try again.
    status, _, answer = server.ask(CHAT, TURN)
    assert status == 503 and answer["error"]["message"] == "the server has ended"
    assert gate.begun == 1


def test_metrics(server):
    assert works(server) and works(server)
    assert server.ask("/nothing")[0] == 404
    _, headers, text = server.ask("/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = text.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(re.fullmatch(r'vkrt_\w+({\w+="[^"]*"(,\w+="[^"]*")*})?', name) for name in values)
    assert {name.partition("{")[0] for name in values} == {
        line.split()[2] for line in lines if line.startswith("# TYPE ")}
    assert values['vkrt_requests_total{path="/v1/chat/completions",status="200"}'] == "2"
    assert values['vkrt_requests_total{path="other",status="404"}'] == "1"
    found = {name: float(value) for name, value in values.items()}
    assert found["vkrt_tokens_total"] == 12 and found["vkrt_prompt_tokens_total"] == 10
    assert found["vkrt_cached_tokens_total"] == 4
    assert found["vkrt_device_bytes"] == server.service.program.memory.phases[-1].device > 0
