"""What the `vkrt` command says to somebody who makes a mistake, or looks for one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import MODELS

from vkrt.cli import main as cli

MLP = str(MODELS / "mlp.pte")
ROOT = Path(__file__).parent.parent


def run(*arguments, **environment):
    """Runs a program in a new process."""
    return subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=ROOT,
                          env={**os.environ, **environment})


@pytest.mark.driver
@pytest.mark.parametrize("command", ["run", "bench"])
def test_a_wrong_method_names_the_option(capsys, command):
    assert cli.main([command, MLP, "--method", "backward"]) == cli.EXIT_USAGE
    error = capsys.readouterr().err
    assert "no method 'backward'" in error and "forward; choose one with --method" in error


@pytest.mark.driver
@pytest.mark.parametrize("arguments", [("--budget", "1"), ("--budget", "1", "--weights", "copy"),
                                       ("--lookahead", "-1"), ("--pipeline-cache", "")])
def test_arguments_are_called_as_on_the_command_line(capsys, arguments):
    assert cli.main(["run", MLP, *arguments]) == cli.EXIT_USAGE
    error = capsys.readouterr().err
    assert error.startswith(f"vkrt: {arguments[0]} ") and "=" not in error


INVALID = """
    import sys
    import vkrt
    from vkrt.cli import main as cli
    from vkrt.errors import LoaderError
    from vkrt.vk.device import Device
    from vkrt.vk.resource import Buffer

    try:
        Device.open().close()
    except LoaderError:
        print("no layer")
        sys.exit()
    right = vkrt.Program.run

    def wrong(self, *inputs, **options):
        for _ in range(3):
            Buffer(self.device, 16, 0).close()  # a usage of 0 is not allowed
        return right(self, *inputs, **options)

    vkrt.Program.run = wrong
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.driver
def test_validation_messages_are_shown_and_fail_the_command():
    # Copied, as newer layers have words for how SwiftShader describes imported memory.
    command = (sys.executable, "-c", textwrap.dedent(INVALID), "run", MLP, "--weights", "copy")
    done = run(*command, VKRT_VALIDATION="1")
    if "no layer" in done.stdout:
        pytest.skip("the Khronos validation layer is not installed")
    assert done.returncode == cli.EXIT_FAILED
    assert "output 0: float32[3, 10]" in done.stdout
    assert done.stderr.count("vkrt: validation error: ") == 1
    assert "messages of the validation layer: errors 3, warnings " in done.stderr
    assert "       3 x VUID-VkBufferCreateInfo" in done.stderr
    # A failure of another kind keeps its code.
    assert run(*command, "--method", "x", VKRT_VALIDATION="1").returncode == cli.EXIT_USAGE


@pytest.mark.driver
def test_without_messages_nothing_is_said():
    done = run(sys.executable, "-m", "vkrt", "run", MLP, VKRT_VALIDATION="0")
    assert done.returncode == 0 and done.stderr == ""
