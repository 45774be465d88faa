"""The page to chat, in a real browser."""

from contextlib import contextmanager

import pytest
from browser import Page
from serving import Gate, said, serving_text, wait_for

TURNS = "[...document.querySelectorAll('#turns p')].map(p => [p.className, p.textContent])"
READY = "document.readyState == 'complete' && document.getElementById('text') !== null"
IDLE = "document.getElementById('send').textContent == 'Send'"


def ask(server, *texts):
    _, _, answer = server.ask("/v1/chat/completions", {"messages": said(*texts), "seed": 1,
                                                       "top_k": 1})
    return answer["choices"][0]["message"]["content"]


@contextmanager
def opened(device, folder, **options):
    """A server, and its page in a browser that has read it."""
    with serving_text(device, folder, **options) as server, Page(
            f"http://127.0.0.1:{server.port}/", folder / "browser") as page:
        wait_for(lambda: page.run(READY))
        yield server, page


def send(page, text):
    page.run(f"document.getElementById('text').value = '{text}'")
    page.run("document.getElementById('send').click()")


@pytest.fixture
def greedy(monkeypatch):
    """The page leaves the choice to the server, which takes the most likely token here."""
    from vkrt.serve import openai

    make = openai.Sampler
    monkeypatch.setattr(openai, "Sampler", lambda *_arguments: make())


def test_a_conversation_in_a_browser(device, tmp_path, greedy):
    with opened(device, tmp_path, tokens=3) as (server, page):
        page.run("document.getElementById('text').focus()")
        page.type("w9 w10")
        page.press("Enter")
        wait_for(lambda: len(page.run(TURNS)) == 2 and page.run(IDLE))
        first = ask(server, "w9 w10")
        assert page.run(TURNS) == [["user", "w9 w10"], ["assistant", first]]
        assert page.run("document.getElementById('model').textContent") == "llama"
        # What is typed is text, whatever it looks like.
        page.type("<b>w3</b>")
        page.run("document.getElementById('send').click()")
        wait_for(lambda: len(page.run(TURNS)) >= 4 and page.run(IDLE))
        assert page.run(TURNS)[2:] == [["user", "<b>w3</b>"], [
            "assistant", ask(server, "w9 w10", first, "<b>w3</b>")]]
        page.run("document.getElementById('clear').click()")
        assert page.run(TURNS) == []
        # An error is shown: the prompt is longer than the context.
        page.type(" ".join(["w9"] * 30))
        page.press("Enter")
        wait_for(lambda: len(page.run(TURNS)) == 3)
        assert "has 33 tokens" in page.run(TURNS)[2][1]


def test_an_answer_is_stopped_in_a_browser(device, tmp_path, monkeypatch):
    with opened(device, tmp_path) as (server, page):
        gate = Gate(server.service.program, monkeypatch)
        send(page, "w9")
        wait_for(lambda: server.service.turns.counts == (1, 0))
        job, = server.service.turns._running
        page.run("document.getElementById('send').click()")
        wait_for(lambda: job.cancelled and page.run(IDLE))
        gate.open()
        wait_for(lambda: server.service.turns.counts == (0, 0))


def test_a_key_is_asked_for_in_a_browser(device, tmp_path, greedy):
    with opened(device, tmp_path, key="sesame") as (server, page):
        page.run("asked = []; window.prompt = text => { asked.push(text); return 'sesame' }; 0")
        send(page, "w9 w10")
        wait_for(lambda: len(page.run(TURNS)) == 2 and page.run(IDLE))
        assert page.run(TURNS)[1][0] == "assistant" and page.run(TURNS)[1][1]
        assert page.run("asked.length") == 1
        status, _, answer = server.ask("/v1/chat/completions", {"messages": said("w9 w10")},
                                       {"Authorization": "Bearer sesame"})
        assert status == 200
        assert answer["choices"][0]["message"]["content"] == page.run(TURNS)[1][1]
