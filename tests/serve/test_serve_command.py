"""`vkrt serve`: the command, from its start to its end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
import serving  # noqa: F401  skips where the packages are not installed
from support import MODELS, write_tokenizer

pytestmark = pytest.mark.driver
LLAMA, MLP = str(MODELS / "llama.pte"), str(MODELS / "mlp.pte")


@contextmanager
def started(*arguments, **environment):
    """A server in a process of its own: the process, and where it is."""
    process = subprocess.Popen([sys.executable, "-m", "vkrt", "serve", *map(str, arguments)],
                               stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})
    try:
        line = process.stderr.readline()
        found = re.match(r"vkrt: serving (.*) on .* at (http://\S+)\n", line)
        assert found, line
        takes = r" \([0-9,]+ bytes of it at most, with \d+ conversations and 64 tokens of a prompt "
        assert bool(re.search(takes, line)) == (arguments[0] == LLAMA)
        yield process, found[1], found[2]
    finally:
        process.kill()
        process.communicate()


def ask(url, body=None, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_language_model(tmp_path, number, code):
    """It answers until a signal, and says nothing more."""
    with started(LLAMA, "--tokenizer", write_tokenizer(tmp_path), "--port", 0, "--conversations", 2,
                 "--name", "small") as (process, name, url):
        assert name == "small" and ask(f"{url}/v1/models")["data"][0]["id"] == "small"
        answer = ask(f"{url}/v1/chat/completions", {
            "messages": [{"role": "user", "content": "w9 w10"}], "temperature": 0})
        assert answer["choices"][0]["message"]["content"].startswith("w58 w52 w6")
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == code
        assert said == ("vkrt: interrupted\n" if code == 130 else "")


def test_a_network():
    with started(MLP, "--port", 0, "--host", "localhost") as (_, name, url):
        assert name == "mlp"
        assert len(ask(f"{url}/v1/run", {"inputs": [[[0.0] * 30] * 3]})["outputs"]) == 1


def test_a_key_where_others_can_ask(error_of):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):
        assert "clients need a key; set VKRT_API_KEY" in error_of(2, "serve", MLP, "--host", host)
    with started(MLP, "--port", 0, "--host", "0.0.0.0", VKRT_API_KEY="sesame") as (_, _, url):
        url = url.replace("0.0.0.0", "127.0.0.1")
        assert ask(f"{url}/v2", key="sesame")["name"] == "vkrt"
        assert ask(f"{url}/health")["status"] == "ok"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"{url}/v2")


def test_what_does_not_fit(error_of, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"--port {port}: " in error_of(1, "serve", MLP, "--port", port)
    error_of(1, "serve", MLP, "--host", "192.0.2.1", "--api-key", "x")
    error = error_of(1, "serve", MLP, "--host", "no such name", "--api-key", "x")
    assert "--host no such name" in error
    for option, value in (("--port", "70000"), ("--conversations", "0"), ("--queue", "-1"),
                          ("--max-tokens", "0"), ("--max-seconds", "nan"), ("--max-body", "large")):
        assert value in error_of(2, "serve", MLP, "--port", "0", option, value)
    error = error_of(2, "serve", LLAMA, "--port", "0", "--tokenizer", tmp_path)
    assert "tokenizer.json" in error
    error_of(1, "serve", tmp_path / "nothing.pte", "--port", "0")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    error = error_of(1, "serve", MLP)
    assert "needs the package uvicorn, " in error and "pip install '.[serve]'" in error
