"""`vkrt serve`: answers requests over HTTP."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

from vkrt.cli import common
from vkrt.cli.generate import add_prefill, add_tokenizer, load_shown
from vkrt.cli.process import take_interrupts
from vkrt.cli.progress import add_progress
from vkrt.errors import InputError, UnsupportedError, missing_package
from vkrt.graph.wording import counted
from vkrt.plan.options import parse_bytes
from vkrt.program.program import Program
from vkrt.text.model import LanguageModel
from vkrt.text.tokenizer import Tokenizer

# The environment variable with the key; other users could read a key in a command line
KEY = "VKRT_API_KEY"
# Further connections get status 503
MAX_CONNECTIONS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_method(parser)
    add_value = partial(common.add_value, parser)
    add_value("--host", default="127.0.0.1",
              what="the address to listen at; one that other machines reach needs a key")
    add_value("--port", default=8000, metavar="N", what="the port; 0 for a free one")
    parser.add_argument("--api-key", metavar="KEY",
                        help="clients have to send it, as Authorization: Bearer KEY (default: what "
                             f"{KEY} in the environment is)")
    parser.add_argument("--name", help="the model's name (default: the file's)")
    add_value("--conversations", default=4, metavar="N",
              what="texts of a language model that are made at once, each with caches of its own")
    add_value("--queue", default=64, metavar="N",
              what="requests that wait, at most; others get status 429")
    add_value("--max-tokens", default=1024, metavar="N", what="tokens of an answer at most")
    add_value("--max-body", default="16MB", metavar="BYTES",
              what="of a request at most, such as 300MB")
    add_value("--max-seconds", default=300.0, metavar="S", what="seconds until an answer ends")
    add_tokenizer(parser)
    add_prefill(parser)
    common.add_load_options(parser)
    add_progress(parser)
    parser.set_defaults(json=False)


def execute(options: argparse.Namespace) -> int:
    try:
        import uvicorn

        from vkrt.serve.service import Limits
    except ImportError as error:
        raise missing_package(error.name or "starlette", "a server", "serve") from error
    key = options.api_key or os.environ.get(KEY) or None
    is_local = _is_local(options.host)
    if not is_local and key is None:
        raise InputError(f"--host {options.host}: other machines reach that, so clients need a key;"
                         f" set {KEY} in the environment, or --api-key")
    for name, least, most in (("port", 0, 65535), ("conversations", 1, 1000), ("queue", 0, 10**6),
                              ("max_tokens", 1, 10**9), ("max_seconds", 0, 10**9)):
        if not least <= getattr(options, name) <= most:
            raise InputError(f"--{name.replace('_', '-')} {getattr(options, name)}: expected "
                             f"{least} to {most}")
    limits = Limits(options.queue, parse_bytes(options.max_body), options.max_seconds,
                    options.max_tokens)
    tokenizer = Tokenizer(options.tokenizer) if options.tokenizer else None
    # Listens before the load, which takes longer: clients wait until that is done.
    with _listener(options.host, options.port) as listener, load_shown(options) as program:
        service, takes = _service(options, program, tokenizer, limits)
        hosts = ["localhost", "127.0.0.1", "[::1]", options.host] if is_local and not key else ["*"]
        app = service.app(service.routes(), key, hosts)
        host, port = listener.getsockname()[:2]
        print(f"vkrt: serving {service.name} on {program.device.info.name}{takes} at "
              f"http://{f'[{host}]' if ':' in host else host}:{port}", file=sys.stderr, flush=True)
        # asyncio also logs that a client has gone.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        take_interrupts()  # the server ends its work first

        class Server(uvicorn.Server):
            def handle_exit(self, sig: int, frame: Any) -> None:
                service.turns.end()  # so that no answer is waited for
                super().handle_exit(sig, frame)

        Server(uvicorn.Config(app, log_level="error", access_log=False, ws="none",
                              server_header=False, proxy_headers=False,
                              limit_concurrency=MAX_CONNECTIONS,
                              timeout_graceful_shutdown=5)).run([listener])
    return 0


def _service(options: argparse.Namespace, program: Program, tokenizer: Tokenizer | None,
             limits: Any) -> tuple[Any, str]:
    """What answers requests, and in words what a language model takes of the device."""
    name = options.name or Path(options.model).stem
    try:
        LanguageModel(program, options.method)
    except (InputError, UnsupportedError):
        from vkrt.serve.arrays import ArrayService

        return ArrayService(program, options.method, name, limits), ""
    from vkrt.serve.conversations import Conversations
    from vkrt.serve.openai import TextService

    tokenizer = tokenizer or Tokenizer(Path(options.model).parent)
    conversations = Conversations(program, options.method, tokenizer, options.conversations,
                                  options.prefill)
    takes = (f" ({conversations.model.peak_of(options.prefill):,} bytes of it at most, with "
             f"{counted(options.conversations, 'conversation')} and {options.prefill} tokens of a "
             "prompt at a time)")
    return TextService(conversations, name, limits, options.conversations), takes


def _is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens at an address (OSError: it is in use, or not this machine's)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise OSError(f"--host {host} --port {port}: {error}") from error
