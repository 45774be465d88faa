"""The service: what all servers share, which is jobs for the device, limits, errors and access."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vkrt.errors import CancelledError, InputError, UnsupportedError, VkrtError
from vkrt.program.program import Program
from vkrt.serve.turns import END, Busy, Job, Turns

# Paths that anybody may ask for, without the key
OPEN = ("/", "/health", "/v2/health/live", "/v2/health/ready")
# Seconds in which a body has to come
BODY_SECONDS = 30


class Refused(Exception):
    """A request that is not answered: its status, and why."""

    def __init__(self, status: int, message: str, param: str | None = None,
                 code: str | None = None):
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


@dataclass(frozen=True)
class Limits:
    """What a request may take."""

    waiting: int = 64  # requests that wait for others
    body: int = 16_000_000  # bytes
    seconds: float = 300.0  # until the answer ends
    tokens: int = 1024  # of an answer


class Results:
    """The items of a job, in the event loop."""

    def __init__(self, turns: Turns, steps: Generator[Any, None, None], deadline: float):
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[Any] = asyncio.Queue()

        def deliver(item: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(items.put_nowait, item)

        self._items = items
        self._job = Job(steps, deliver, deadline)
        turns.submit(self._job)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (item := await self._items.get()) is not END:
            if isinstance(item, BaseException):
                raise item
            yield item

    def cancel(self) -> None:
        """Ends the job after its current step."""
        self._job.cancelled = True


class EventStream(StreamingResponse):
    """Server-sent events; whatever ends the response ends the job."""

    def __init__(self, events: AsyncIterator[str], results: Results):
        super().__init__(events, media_type="text/event-stream",
                         headers={"cache-control": "no-store"})
        self._results = results

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._results.cancel()


class Service:
    """Answers requests for one program.

    Args:
        name: of the model, in paths and answers.
        at_once: requests that take turns on the device.
    """

    def __init__(self, program: Program, name: str, limits: Limits, at_once: int):
        self.program, self.name, self.limits = program, name, limits
        self.turns = Turns(at_once, limits.waiting)
        self.statuses: Counter[tuple[str, int]] = Counter()

    def deadline(self) -> float:
        """When the answer to a request that comes now has to end, by `time.monotonic`."""
        return monotonic() + self.limits.seconds

    def begin(self, steps: Generator[Any, None, None], deadline: float) -> Results:
        """Gives the device a job; raises Refused where too many wait."""
        if self.turns.failure:
            raise Refused(503, self.turns.failure)
        try:
            return Results(self.turns, steps, deadline)
        except Busy as error:
            raise Refused(429, "too many requests are waiting; try again later",
                          code="rate_limit_exceeded") from error

    async def all_of(self, request: Request, results: Results) -> list[Any]:
        """All items; Refused if the client has gone, or the time was over before it began."""
        async def items() -> list[Any]:
            return [item async for item in results]

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        tasks = asyncio.ensure_future(items()), asyncio.ensure_future(gone())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise Refused(499, "the client has gone")
            return tasks[0].result()
        except TimeoutError as error:
            raise Refused(503, "other requests took all the time") from error
        finally:
            results.cancel()
            for task in tasks:
                task.cancel()

    async def body_of(self, request: Request) -> bytes:
        """The body; Refused where it is too long or too slow."""
        parts, length = [], 0
        try:
            with anyio.fail_after(BODY_SECONDS):
                async for part in request.stream():
                    length += len(part)
                    if length > self.limits.body:
                        raise Refused(413, f"the body has more than {self.limits.body:,} bytes")
                    parts.append(part)
        except TimeoutError as error:
            raise Refused(408, f"the body took more than {BODY_SECONDS} seconds") from error
        except ClientDisconnect as error:
            raise Refused(499, "the client has gone") from error
        return b"".join(parts)

    async def health(self, request: Request) -> Response:
        """Whether requests are answered."""
        failure = self.turns.failure
        return JSONResponse({"status": failure or "ok"}, 503 if failure else 200)

    async def metrics(self, request: Request) -> Response:
        running, waiting = self.turns.counts
        memory = self.program.memory
        lines = ["# TYPE vkrt_requests_total counter", *(
            f'vkrt_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.statuses.items()))]
        for name, value in {"requests_running": running, "requests_waiting": waiting,
                            "device_bytes": memory.phases[-1].device if memory.phases else 0,
                            "device_peak_bytes": memory.measured_peak, **self.figures()}.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# TYPE vkrt_{name} {kind}", f"vkrt_{name} {value}"]
        return PlainTextResponse("\n".join([*lines, ""]),
                                 media_type="text/plain; version=0.0.4; charset=utf-8")

    def figures(self) -> Mapping[str, float]:
        return {}

    def app(self, routes: Sequence[Route], key: str | None, hosts: Sequence[str]) -> Starlette:
        """The application.

        Args:
            key: what a client has to know; None lets everybody in.
            hosts: the names of the server that requests may use; "*" for all. Others are refused,
                so that no page of a site whose own name leads to this server reaches it.
        """
        routes = [*routes, Route("/health", self.health), Route("/metrics", self.metrics)]

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            yield
            await anyio.to_thread.run_sync(self.turns.close)

        errors: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = dict.fromkeys(
            (Refused, HTTPException, InputError, VkrtError, Exception), _refusal)
        paths = frozenset(route.path for route in routes)
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers=errors, middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
            Middleware(_Guard, key=key, statuses=self.statuses, paths=paths)])


class _Guard:
    """Lets in clients that have the key, keeps out pages of other sites, and counts the answers."""

    def __init__(self, app: ASGIApp, key: str | None, statuses: Counter[tuple[str, int]],
                 paths: frozenset[str]):
        self._app, self._key, self._statuses, self._paths = app, key, statuses, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._statuses[path, message["status"]] += 1
            await send(message)

        request = Request(scope)
        origin = request.headers.get("origin")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        app = self._app
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            app = await _refusal(request, Refused(403, "a page of another site"))
        elif self._key is not None and scope["path"] not in OPEN and not hmac.compare_digest(
                given.encode("latin-1"), self._key.encode()):
            app = await _refusal(request, Refused(401, "expected Authorization: Bearer KEY, with "
                                                       "the server's key", code="invalid_api_key"))
        await app(scope, receive, count)


async def _refusal(request: Request, error: Any) -> Response:
    """The response to an error, as OpenAI's API or the V2 protocol has it."""
    status = {InputError: 400, UnsupportedError: 400, CancelledError: 503,
              Refused: getattr(error, "status", 0),
              HTTPException: getattr(error, "status_code", 0)}.get(type(error), 500)
    text = getattr(error, "detail", None) or str(error)
    headers = dict(getattr(error, "headers", None) or {})
    if status == 429:
        headers["retry-after"] = "1"
    if request.url.path.startswith("/v2"):
        return JSONResponse({"error": text}, status, headers)
    return JSONResponse(error_object(text, status, getattr(error, "param", None),
                                     getattr(error, "code", None)), status, headers)


def error_object(message: str, status: int, param: str | None = None, code: str | None = None
                 ) -> dict[str, Any]:
    """An error as OpenAI's API has it."""
    return {"error": {"message": message, "param": param, "code": code,
                      "type": "invalid_request_error" if status < 500 else "server_error"}}


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; Refused where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused(400, "the body is not a JSON object")
    return found


def taken(body: Mapping[str, Any], name: str, kind: Any, default: Any = None) -> Any:
    """A member of a JSON object, of one of these types; the default where it is missing or null."""
    value = body.get(name)
    if value is None:
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false",
                 list: "an array", dict: "an object"}
        raise Refused(400, f"{name}: expected {' or '.join(words[k] for k in kinds)}, got "
                           f"{json.dumps(value)[:60]}", name)
    return value
