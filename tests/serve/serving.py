"""A server in this process, and clients of it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import MODELS, write_tokenizer

import vkrt

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from vkrt.serve.arrays import ArrayService  # noqa: E402
from vkrt.serve.conversations import Conversations  # noqa: E402
from vkrt.serve.openai import TextService  # noqa: E402
from vkrt.serve.service import Limits  # noqa: E402

SECONDS = 20  # after which a test that waits has failed


class Server:
    """A running server of a service, on a port of 127.0.0.1."""

    def __init__(self, service, key=None, hosts=("*",)):
        self.service = service
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._server = uvicorn.Server(uvicorn.Config(
            service.app(service.routes(), key, hosts), log_level="error", ws="none",
            timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))

    def __enter__(self):
        self._thread.start()
        wait_for(lambda: self._server.started)
        return self

    def __exit__(self, *exception):
        self._server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        self._listener.close()

    def ask(self, path, body=None, headers=None, method=None):
        """Status, headers and body of a request; what is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = "json" in response.headers.get("content-type", "")
        return response.status, response.headers, json.loads(content) if is_json else content

    def client(self, key="none"):
        """A client of OpenAI's package."""
        openai = pytest.importorskip("openai")
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key,
                             max_retries=0, timeout=SECONDS)

    def connect(self, text):
        """A connection on which this was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        connection.sendall(text if isinstance(text, bytes) else text.encode())
        return connection


def said(*texts):
    """A conversation, in which the user begins."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@contextmanager
def serving_text(device, folder, *, count=4, key=None, hosts=("*",), write=write_tokenizer,
                 **limits) -> Iterator[Server]:
    """A server of `llama.pte`."""
    with vkrt.load(MODELS / "llama.pte", device) as program:
        conversations = Conversations(program, "forward", vkrt.Tokenizer(write(folder)), count, 64)
        with Server(TextService(conversations, "llama", Limits(**limits), count), key,
                    hosts) as server:
            yield server


@contextmanager
def serving_arrays(device, name, **limits) -> Iterator[Server]:
    """A server of a program without text."""
    with vkrt.load(MODELS / name, device) as program, \
            Server(ArrayService(program, "forward", "net", Limits(**limits))) as server:
        yield server


class Gate:
    """Holds up the runs of a program; `begun` counts those that have reached it."""

    def __init__(self, program, monkeypatch):
        self.begun = 0
        self._let = threading.Semaphore(0)
        self._open = False
        run = program.run

        def held(*arguments, **further):
            self.begun += 1
            if not self._open:
                assert self._let.acquire(timeout=SECONDS)
            return run(*arguments, **further)

        monkeypatch.setattr(program, "run", held)

    def let(self, count=1):
        """Lets so many runs through."""
        self._let.release(count)

    def open(self):
        """Lets all runs through."""
        self._open = True
        self._let.release(1000)
