"""OpenAI's API, by the client of PyPI: answers, streams, many clients at once, a prefix that an
earlier conversation has read."""

import gc
import json
from functools import partial

import pytest
from serving import said, serving_text
from support import in_threads, raising, write_letters

import vkrt
from vkrt.serve.service import Results
from vkrt.text.answer import Answer
from vkrt.text.model import Session
from vkrt.vk import live_objects

CLIENTS = 32


@pytest.fixture
def server(device, tmp_path):
    with serving_text(device, tmp_path) as running:
        yield running


@pytest.fixture
def client(server):
    return server.client()


def chat(client, *texts, **options):
    """What is answered in a conversation."""
    return client.chat.completions.create(model="llama", messages=said(*texts), **options)


def complete(client, prompt="w7 w33 w20", **options):
    return client.completions.create(model="llama", prompt=prompt, **options)


@pytest.fixture
def expected(server):
    """What follows a text of tokens, with its tokens: made without the server."""
    service = server.service

    def follows(text, count):
        tokenizer, program = service.conversations.tokenizer, service.program
        ids = list(vkrt.generate(program, tokenizer.encode(text), max_tokens=count))
        return tokenizer.decode([i for i in ids if i not in (2, 3)]), ids

    return follows


def test_models(client):
    model, = client.models.list().data
    assert model.id == "llama" and client.models.retrieve("llama").id == "llama"
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.NotFoundError, match="no model 'other' here, but 'llama'"):
        client.models.retrieve("other")
    with pytest.raises(openai.NotFoundError, match="no model 'other'"):
        client.completions.create(model="other", prompt="w1")


def test_a_turn_of_a_conversation(client, expected):
    text, ids = expected("w1 w9 w10 w2 w1", 6)
    answer = chat(client, "w9 w10", temperature=0, max_completion_tokens=6)
    choice, = answer.choices
    assert choice.message.content == text and choice.message.role == "assistant"
    assert choice.finish_reason == "length" and answer.usage.completion_tokens == len(ids) == 6
    assert answer.usage.prompt_tokens == 5 and answer.usage.total_tokens == 11
    parts = [{"type": "text", "text": text} for text in ("w9 ", "w10")]
    answer = chat(client, parts, temperature=0, max_tokens=6)
    assert answer.choices[0].message.content == text


def test_a_text_goes_on(client, expected):
    text, _ = expected("w7 w33 w20", 6)
    for prompt in ("w7 w33 w20", ["w7 w33 w20"], [7, 33, 20], [[7, 33, 20]]):
        answer = complete(client, prompt, temperature=0, max_tokens=6)
        assert answer.choices[0].text == " " + text
    # To the end of the context, of which the last token is not read
    answer = complete(client, temperature=0)
    assert answer.choices[0].finish_reason in ("length", "stop")
    assert answer.usage.total_tokens <= 25
    stop = f"{text.split()[2]} {text.split()[3][:1]}"
    answer = complete(client, temperature=0, max_tokens=6, stop=[stop, "nothing"])
    assert answer.choices[0].text == (" " + text).split(stop)[0]
    assert answer.choices[0].finish_reason == "stop"


def test_streams_are_the_same_text(client):
    options = {"temperature": 0, "max_tokens": 6}
    whole = chat(client, "w9 w10", **options)
    *chunks, last = chat(client, "w9 w10", stream=True, stream_options={"include_usage": True},
                         **options)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]
    assert "".join(pieces) == whole.choices[0].message.content and len(pieces) == 6
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "length" and last.usage.completion_tokens == 6
    whole = complete(client, "w7 w33", **options)
    chunks = list(complete(client, "w7 w33", stream=True, **options))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason


def test_seeds_and_choices(client):
    def text(seed, **extra):
        extra = {"top_k": 40, "min_p": 0.001, "repeat_penalty": 1.1, **extra}
        return complete(client, max_tokens=8, seed=seed, temperature=3, top_p=0.99,
                        extra_body=extra).choices[0].text

    assert text(1) == text(1) != text(2) and text(-1) == text(-1)
    assert text(1, top_k=1) == text(2, top_k=1)


def test_what_an_earlier_conversation_has_read(client):
    """A turn reads only what is new, also after those of others, as long as there are states."""
    def turn(*texts):
        answer = chat(client, *texts, temperature=0, max_tokens=3)
        return answer.choices[0].message.content, answer.usage.prompt_tokens_details.cached_tokens

    first, cached = turn("w9 w10")
    assert cached == 0
    others = [turn(f"w{n} w{n + 1} w{n + 2}") for n in (20, 30, 40)]
    assert all(cached <= 1 for _, cached in others)
    # The prompt and the answer, whose last token was chosen but not read
    assert turn("w30 w31 w32", others[1][0], "w5")[1] == 8
    # One more than there are states takes the place of the one that was used least lately.
    turn("w50 w51 w52 w53")
    assert turn("w9 w10", first, "w11")[1] <= 1
    assert turn("w40 w41 w42", others[2][0], "w5")[1] == 8


def test_many_clients_at_once(server, expected):
    """No answer is lost, or mixed up with another one, and nothing grows."""
    texts = {f"w{n + 20} w{n + 21} w{3 * n % 17 + 3}": "" for n in range(CLIENTS)}
    for text in texts:
        texts[text] = expected(f"w1 {text} w2 w1", 8)[0]
    assert len(set(texts.values())) > CLIENTS // 2
    failures = []

    def talk(client, text, is_streamed):
        try:
            answer = chat(client, text, temperature=0, max_tokens=8, stream=is_streamed)
            found = ("".join(c.choices[0].delta.content or "" for c in answer) if is_streamed
                     else answer.choices[0].message.content)
            if found != texts[text]:
                failures.append((text, found, texts[text]))
        except Exception as error:
            failures.append((text, error))

    clients = [server.client() for _ in texts]

    def rounds():
        in_threads(*(partial(talk, client, text, (n + r) % 2 == 0) for r in range(2)
                     for n, (client, text) in enumerate(zip(clients, texts))))
        assert not failures
        gc.collect()
        kept = [sum(isinstance(o, kind) for o in gc.get_objects())
                for kind in (Answer, Results, Session)]
        return kept, server.service.program.memory.phases[-1].device, live_objects()

    first = rounds()
    assert first[0] == [0, 0, 4]
    assert rounds() == first and server.service.turns.counts == (0, 0)
    status, _, metrics = server.ask("/metrics")
    assert b'path="/v1/chat/completions",status="200"} 128' in metrics and status == 200


@pytest.mark.parametrize("template", [None, "{% for m in", "{{ raise_exception('no') }}"])
def test_a_template_that_cannot_be_used(device, tmp_path, template):
    """Texts without one go on."""
    with serving_text(device, tmp_path) as server:
        server.service.conversations.tokenizer._config.pop("chat_template")
        if template is not None:
            (tmp_path / "chat_template.jinja").write_text(template)
        status, _, body = server.ask("/v1/chat/completions", {"messages": said("w7")})
        assert status == 400 and "chat template" in body["error"]["message"]
        assert body["error"]["type"] == "invalid_request_error"
        assert server.ask("/v1/completions", {"prompt": "w7", "max_tokens": 2})[0] == 200


def test_what_vkrt_does_not_do_is_the_requests_fault(device, tmp_path, monkeypatch):
    with serving_text(device, tmp_path) as server:
        monkeypatch.setattr(server.service.conversations, "answer",
                            raising(vkrt.UnsupportedError, "no such thing"))
        status, _, body = server.ask("/v1/completions", {"prompt": "w7"})
        assert status == 400 and body["error"] == {
            "message": "no such thing", "type": "invalid_request_error", "param": None,
            "code": None}


def test_an_answer_of_a_schema(device, tmp_path):
    pytest.importorskip("llguidance")
    (tmp_path / "chat_template.jinja").write_text("{{ messages[-1].content }}")
    schema = {"type": "object", "additionalProperties": False, "required": ["w"],
              "properties": {"w": {"enum": ["yes", "no"]}}}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    with serving_text(device, tmp_path, write=write_letters) as server:
        client = server.client()
        answer = chat(client, "a", seed=1, response_format=form)
        assert json.loads(answer.choices[0].message.content)["w"] in ("yes", "no")
        assert answer.choices[0].finish_reason == "stop"
        answer = chat(client, "a", seed=1, response_format={"type": "json_object"})
        assert answer.choices[0].message.content.startswith("{")
        answer = complete(client, "a", seed=1, extra_body={"grammar": 'root ::= "no" | "yes"'})
        assert answer.choices[0].text in ("yes", "no")
        openai = pytest.importorskip("openai")
        for extra in ({"grammar": 'root ::= ("a"'}, {"response_format": {
                "type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}}):
            with pytest.raises(openai.BadRequestError, match="gbnf: |json_schema: "):
                complete(client, "a", extra_body=extra)
