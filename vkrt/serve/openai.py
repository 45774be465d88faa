"""OpenAI's API over a language model: models, chat completions, completions, and a page to chat."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from vkrt.errors import VkrtError
from vkrt.serve.conversations import Conversations
from vkrt.serve.service import (
    EventStream,
    Limits,
    Refused,
    Results,
    Service,
    error_object,
    object_of,
    taken,
)
from vkrt.text.answer import Answer
from vkrt.text.grammar import Grammars
from vkrt.text.sampling import Sampler

PAGE = Path(__file__).with_name("page.html")
MAX_STOPS = 16
# Members of a request that are not supported, and the values with which they ask for nothing
UNKNOWN: dict[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "logprobs": (False,), "top_logprobs": (0,), "echo": (False,),
    "suffix": ("",), "tools": ([],), "functions": ([],), "logit_bias": ({},),
    "presence_penalty": (0,), "frequency_penalty": (0,)}


@dataclass(frozen=True)
class Wanted:
    """A request, ready for the device."""

    ids: list[int]
    choose: Any
    max_tokens: int
    stop: tuple[str, ...]
    is_chat: bool
    streams: bool
    with_usage: bool


class TextService(Service):
    """Serves a language model; arguments as those of `Service`."""

    def __init__(self, conversations: Conversations, name: str, limits: Limits, at_once: int):
        super().__init__(conversations.model.program, name, limits, at_once)
        self.conversations = conversations
        self.grammars = Grammars(conversations.model, conversations.tokenizer)
        self.began = int(time.time())

    def routes(self) -> list[Route]:
        return [Route("/", self.page), Route("/v1/models", self.models),
                Route("/v1/models/{name:path}", self.model),
                Route("/v1/chat/completions", partial(self.complete, is_chat=True),
                      methods=["POST"]),
                Route("/v1/completions", partial(self.complete, is_chat=False), methods=["POST"])]

    def figures(self) -> Mapping[str, float]:
        return {f"{name}_total": value for name, value in self.conversations.totals.items()}

    async def page(self, request: Request) -> Response:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers={
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
                                       "script-src 'unsafe-inline'; connect-src 'self'; "
                                       "frame-ancestors 'none'; base-uri 'none'"})

    def _model(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": self.began, "owned_by": "vkrt"}

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def model(self, request: Request) -> Response:
        self._check_name(request.path_params["name"])
        return JSONResponse(self._model())

    async def complete(self, request: Request, is_chat: bool) -> Response:
        """The next turn of a conversation, or the text that follows a prompt."""
        deadline = self.deadline()
        body = object_of(await self.body_of(request))
        # Templates, tokenizers and grammars take a while.
        wanted = await anyio.to_thread.run_sync(self._wanted, body, is_chat)
        results = self.begin(self.conversations.answer(
            wanted.ids, wanted.choose, wanted.max_tokens, wanted.stop, deadline, not is_chat),
            deadline)
        shared = {"id": f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}",
                  "created": int(time.time()), "model": self.name}
        if wanted.streams:
            return EventStream(_events(wanted, results, shared), results)
        answer, *pieces = await self.all_of(request, results)
        text = "".join(pieces)
        content = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        return JSONResponse({
            **shared, "object": "chat.completion" if is_chat else "text_completion",
            "choices": [_choice(content, answer.reason)], "usage": _usage(answer)})

    def _wanted(self, body: dict[str, Any], is_chat: bool) -> Wanted:
        """What a request asks for; Refused or InputError if that is not possible."""
        self._check_name(taken(body, "model", str, self.name))
        for name, values in UNKNOWN.items():
            if body.get(name) is not None and body[name] not in values:
                raise Refused(400, f"{name}: not supported", name)
        tokenizer, model = self.conversations.tokenizer, self.conversations.model
        number = (int, float)
        if is_chat:
            text = tokenizer.chat(_messages(body))
            ids = tokenizer.encode(text, special=False)
        else:
            prompt = taken(body, "prompt", (str, list))
            if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
                prompt = prompt[0]
            ids = tokenizer.encode(prompt) if isinstance(prompt, str) else prompt or []
            if not all(type(i) is int and 0 <= i < model.vocabulary for i in ids):
                raise Refused(400, "prompt: expected one text, or tokens of the model's", "prompt")
        if not ids:
            raise Refused(400, "the prompt has no tokens; expected at least one", "prompt")
        if len(ids) >= model.context:
            raise Refused(400, f"the prompt has {len(ids)} tokens, and the model has room for "
                               f"{model.context} with the answer", code="context_length_exceeded")
        most = taken(body, "max_completion_tokens", int, taken(body, "max_tokens", int,
                                                               self.limits.tokens))
        if most < 1:
            raise Refused(400, f"max_tokens: expected 1 or more, got {most}", "max_tokens")
        stop = taken(body, "stop", (str, list), [])
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        if len(stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in stops):
            raise Refused(400, f"stop: expected at most {MAX_STOPS} texts, none of them empty",
                          "stop")
        seed = taken(body, "seed", int)
        choose: Any = Sampler(
            taken(body, "temperature", number, 1.0), taken(body, "top_k", int, 0),
            taken(body, "top_p", number, 1.0), taken(body, "repeat_penalty", number, 1.0),
            None if seed is None else seed % (1 << 64), taken(body, "min_p", number, 0.0),
            taken(body, "repeat_last_n", int, 64))
        grammar = _grammar(body)
        if grammar is not None:
            choose = self.grammars.constrained(choose, *grammar)
        options = taken(body, "stream_options", dict, {})
        return Wanted(ids, choose, min(most, self.limits.tokens), stops, is_chat,
                      taken(body, "stream", bool, False),
                      taken(options, "include_usage", bool, False))

    def _check_name(self, name: str) -> None:
        if name != self.name:
            raise Refused(404, f"there is no model '{name}' here, but '{self.name}'", "model",
                          "model_not_found")


def _messages(body: Mapping[str, Any]) -> list[dict[str, str]]:
    """The messages of a conversation; parts of a text are put together."""
    found = []
    for message in taken(body, "messages", list, []):
        if not isinstance(message, dict):
            raise Refused(400, "messages: expected objects", "messages")
        content = taken(message, "content", (str, list), "")
        if isinstance(content, list):
            if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
                raise Refused(400, "content: only parts of type \"text\" are supported", "messages")
            content = "".join(taken(part, "text", str, "") for part in content)
        found.append({"role": taken(message, "role", str, ""), "content": content})
    if not found:
        raise Refused(400, "messages: expected at least one", "messages")
    return found


def _grammar(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Kind and text of the grammar that an answer keeps to, see `Grammars.constrained`."""
    form = taken(body, "response_format", dict, {})
    kind = taken(form, "type", str, "text")
    grammar = taken(body, "grammar", str)
    if grammar is not None:
        return "gbnf", grammar
    if kind == "json_object":
        return "json_schema", '{"type": "object"}'
    if kind == "json_schema":
        schema = taken(taken(form, "json_schema", dict, {}), "schema", dict, {})
        return "json_schema", json.dumps(schema)
    if kind != "text":
        raise Refused(400, f"response_format: '{kind}' is not supported", "response_format")
    return None


async def _events(wanted: Wanted, results: Results, shared: Mapping[str, Any]
                  ) -> AsyncIterator[str]:
    """The answer as server-sent events."""
    kind = "chat.completion.chunk" if wanted.is_chat else "text_completion"

    def event(content: Mapping[str, Any], reason: str | None = None) -> str:
        content = {"delta": content} if wanted.is_chat else {"text": "", **content}
        return _event({**shared, "object": kind, "choices": [_choice(content, reason)]})

    answer: Answer | None = None
    try:
        async for item in results:
            if isinstance(item, Answer):
                answer = item
                if wanted.is_chat:
                    yield event({"role": "assistant", "content": ""})
            elif item:
                yield event({"content" if wanted.is_chat else "text": item})
    except (VkrtError, TimeoutError) as error:
        message = str(error) or "other requests took all the time"
        yield _event(error_object(message, 500))
        return
    assert answer is not None
    yield event({}, answer.reason)
    if wanted.with_usage:
        yield _event({**shared, "object": kind, "choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _choice(content: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, **content, "logprobs": None, "finish_reason": reason}


def _usage(answer: Answer) -> dict[str, Any]:
    return {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.tokens,
            "total_tokens": answer.prompt_tokens + answer.tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens}}
