"""Ctrl-C ends the command, whatever it is at, with 130 and a line."""

from __future__ import annotations

import os
import subprocess
import textwrap
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from support import MODELS, python, same_bits, write_tokenizer
from test_interrupts import chain

import vkrt
from vkrt.device.policy import overridden, policy_of

MLP, LLAMA = str(MODELS / "mlp.pte"), str(MODELS / "llama.pte")


@pytest.fixture
def line(name, tmp_path, monkeypatch):
    """The line of a command that loads, by its name, a parameter; caches are in a folder of the
    test's."""
    pytest.importorskip("uvicorn" if name == "serve" else "tokenizers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = [LLAMA, "--tokenizer", str(write_tokenizer(tmp_path))]
    return {"run": ["run", MLP], "generate": ["generate", *text, "--prompt", "w7 w33"],
            "serve": ["serve", *text, "--port", "0"]}[name]


def is_interrupted(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a command ended as by Ctrl-C, with a line, and left no half of a file."""
    left = [name for _, _, names in os.walk(os.environ["XDG_CACHE_HOME"]) for name in names
            if name.endswith(".tmp")]
    return (done.returncode, done.stdout, done.stderr, left) == (130, "", "vkrt: interrupted\n", [])


def command(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, behind some code."""
    code = textwrap.dedent(code) + "from vkrt.cli import command\nsys.exit(command())\n"
    return python("-c", code, *arguments)


DURING_IMPORT = """
    import signal, sys
    module = sys.argv.pop(1)
    class Finder:
        def find_spec(name, *_):
            if name == module:
                signal.raise_signal(signal.SIGINT)
    import vkrt
    sys.meta_path.insert(0, Finder)
"""


@pytest.mark.parametrize("module", ["threading", "vkrt.cli.main", "argparse", "vkrt.plan.options",
                                    "vkrt.memory.strategies", "vkrt.cli.run", "numpy"])
def test_during_the_imports(module):
    code = DURING_IMPORT
    if module == "threading":  # which another package may have imported
        code += "    sys.modules.pop('threading', None)\n"
    done = command(code, module, "run", MLP)
    assert (done.returncode, done.stderr) == (130, "vkrt: interrupted\n")


@pytest.mark.parametrize(("name", "module"), [
    ("generate", "vkrt.cli.generate"), ("generate", "vkrt.text.grammar"),
    ("generate", "tokenizers"), ("serve", "uvicorn"), ("serve", "vkrt.serve.service"),
    ("serve", "vkrt.serve.openai")])
def test_during_the_imports_of_commands_that_take_interrupts(line, module):
    assert is_interrupted(command(DURING_IMPORT, module, *line))


# The signal comes when a call of a function begins, and the function is in Python.
DURING_CALL = """
    import importlib, signal, sys
    module, path, count = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
    *names, name = path.split(".")
    owner = importlib.import_module(module)
    for part in names:
        owner = getattr(owner, part)
    called = getattr(owner, name)
    def interrupted(*arguments, **keywords):
        global count
        count -= 1
        if not count:
            signal.raise_signal(signal.SIGINT)
        return called(*arguments, **keywords)
    setattr(owner, name, interrupted)
"""


@pytest.mark.driver
@pytest.mark.parametrize(("name", "module", "path", "count"), [
    ("generate", "vkrt.text.tokenizer", "Tokenizer.__init__", 1),
    ("generate", "vkrt.program.program", "Program.__init__", 1),
    ("generate", "vkrt.cli.progress", "Progress.on_progress", 1),
    ("generate", "vkrt.cli.progress", "Progress.on_progress", 5),
    ("generate", "vkrt.text.model", "LanguageModel.__init__", 1),
    ("serve", "socket", "create_server", 1),
    ("serve", "vkrt.program.program", "Program.__init__", 1),
    ("serve", "vkrt.cli.progress", "Progress.on_progress", 1),
    ("serve", "vkrt.cli.progress", "Progress.on_progress", 5),
    ("serve", "vkrt.text.tokenizer", "Tokenizer.__init__", 1),
    ("serve", "vkrt.serve.conversations", "Conversations.__init__", 1),
    ("serve", "vkrt.serve.service", "Service.app", 1),
])
def test_during_the_load_of_commands_that_take_interrupts(line, module, path, count):
    assert is_interrupted(command(DURING_CALL, module, path, str(count), *line))


# A load never ends, in C, where Python hears no signals, as in a driver that compiles; or what an
# interruption has to wait for does not.
HANGING = """
    import ctypes, os, signal, sys, threading, time
    from vkrt.program.program import Program
    def wait():
        ctypes.CDLL(None).sem_wait(ctypes.create_string_buffer(64))
    def hang(*_, **__):
        signal.siginterrupt(signal.SIGINT, False)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        {wait}
    Program.__init__ = hang
"""


@pytest.mark.parametrize("name", ["run", "generate", "serve"])
@pytest.mark.parametrize("wait", ["wait()", """
        try:
            time.sleep(3600)
        finally:
            wait()""", """
        class Lost:
            def __del__(self):
                time.sleep(3600)
        Lost()
        wait()"""], ids=["compiling", "closing", "lost"])
def test_what_python_does_not_get_out_of(line, wait):
    """Not even where an interruption is lost: Python raises it where nobody can catch it."""
    assert is_interrupted(command(HANGING.format(wait=wait), *line))


def test_without_a_signal_nothing_ends():
    done = command("import sys\n", "--version")
    assert done.returncode == 0 and vkrt.__version__ in done.stdout


# Submissions


def test_submissions_are_short(device):
    """Also on CPU drivers, where nothing but the user waits for the end of one; same bits."""
    if device.info.type != "cpu":
        pytest.skip("of CPU drivers")
    policy = policy_of(device.info)
    assert policy.submission_seconds and policy.submission_seconds <= 0.25
    inputs = [np.random.default_rng(2).standard_normal((512, 512)).astype(np.float32)]
    # Products of 2^27 multiply-adds, as many as take a second by the driver's rate
    count = int(policy.speed.multiply_adds / 2**27)
    method = chain(device, count)
    with overridden(replace(policy, submission_seconds=None)):
        whole = chain(device, count)
    with closing(method), closing(whole):
        assert len(method.plan.submissions) >= 4 and len(whole.plan.submissions) == 1
        same_bits(method.execute(inputs), whole.execute(inputs))


def test_runs_that_change_a_state_are_whole(device):
    """An interruption between two submissions would leave the state half changed."""
    with (overridden(replace(policy_of(device.info), submission_seconds=1e-9)),
          vkrt.load(MODELS / "buffers.pte", device) as program):
        count = len(program.load_method("forward").plan.submissions)
    assert (count == 1) == (device.info.type == "cpu")
