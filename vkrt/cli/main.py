"""The `vkrt` command: one module per command, imported when that command is asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from contextlib import suppress
from dataclasses import fields
from typing import Any, TextIO

from vkrt.cli.common import EXIT_PIPE, EXIT_UNSUPPORTED, EXIT_USAGE
from vkrt.cli.process import EXIT_FAILED, EXIT_INTERRUPTED
from vkrt.errors import InputError, PackageError, UnsupportedError, VkrtError, missing_package
from vkrt.plan.options import LoadOptions
from vkrt.version import __version__

# The commands. Each is a module of this package with `add_arguments(parser)` and
# `execute(options)`, which returns the exit code.
COMMANDS = {
    "devices": "list the Vulkan devices",
    "info": "what a program is and how much memory it will take",
    "run": "run a program once",
    "generate": "write text with a language model",
    "serve": "answer requests over HTTP, as OpenAI's API or the V2 protocol has them",
    "bench": "measure loading and running programs",
    "compile": "compile a program to a file that loads without lowering and planning",
    "doctor": "what a device is like, and whether it computes right",
    "tune": "measure what is best on a driver, by which kernels are chosen",
}


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit code.

    0: done. 1: it failed (bad file, driver, memory), or with VKRT_VALIDATION=1 the validation layer
    found an error. 2: wrong arguments. 3: the program needs something that vkrt lacks.
    130: interrupted. 141: nobody reads the output any more. Without words it lists the commands.
    """
    words = sys.argv[1:] if argv is None else argv
    if "_ARGCOMPLETE" in os.environ:
        _complete(os.environ.get("COMP_LINE", "").split()[1:2])
    if not words:
        _parser([]).print_help()
        return EXIT_USAGE
    return _validated(_command(words))


def _complete(names: list[str]) -> None:
    """Answers a shell that asks how a command line may go on, and ends the process."""
    try:
        import argcomplete
    except ImportError as error:
        raise missing_package("argcomplete", "completing commands", "completion") from error
    argcomplete.autocomplete(_parser(names))


def _parser(names: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vkrt", description="Runs ExecuTorch programs on Vulkan in the least memory.")
    parser.add_argument("--version", action="version", version=f"vkrt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"vkrt {name}: {text}.")
        if name in names:
            module = importlib.import_module(f"vkrt.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(execute=module.execute)
    return parser


def _command(words: list[str]) -> int:
    options: Any = None
    try:
        options = _parser(words[:1]).parse_args(words)
        code = options.execute(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output(sys.stdout)
        return EXIT_PIPE
    except PackageError as error:
        return _fail(error, EXIT_FAILED)
    except UnsupportedError as error:
        return _fail(_of_file(options, error), EXIT_UNSUPPORTED)
    except InputError as error:
        return _fail(_by_options(str(error)), EXIT_USAGE)
    except (VkrtError, OSError) as error:
        if isinstance(error, OSError):
            _drop_output(sys.stdout)  # it may be the output that cannot be written
        return _fail(_of_file(options, error), EXIT_FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)


def _fail(error: Any, code: int) -> int:
    with suppress(BrokenPipeError):
        print(f"vkrt: {error}", file=sys.stderr)
    _drop_output(sys.stderr)
    return code


def _of_file(options: Any, error: Exception) -> str:
    """The message of an error, with the program's file in front unless it names a file itself."""
    model, text = getattr(options, "model", None), str(error)
    if model is None or isinstance(error, OSError) or any(
            name in text for name in (model, *options.data_path)):
        return text
    return f"{model}: {text}"


def _by_options(message: str) -> str:
    """A message about an argument in the words of the command line."""
    for name in (*(option.name for option in fields(LoadOptions)), "data_path"):
        message = re.sub(rf"\b{name}=", f"--{name.replace('_', '-')} ", message)
    if message.startswith("no method "):
        message += "; choose one with --method"
    if message.endswith("nor tokenizer.model is there"):
        message += "; name one with --tokenizer FILE"
    return message


def _validated(code: int) -> int:
    """Counts what the validation layer said, and lets its errors decide the exit code."""
    from vkrt.vk import validation_findings

    findings = validation_findings()
    if findings:
        errors = sum(f.times for f in findings if f.error)
        warnings = sum(f.times for f in findings if not f.error)
        print(f"vkrt: messages of the validation layer: errors {errors}, warnings {warnings}; the "
              "first of each kind is above", file=sys.stderr)
        for finding in findings:
            print(f"{finding.times:>8} x {finding.id or finding.text}", file=sys.stderr)
        return code or (EXIT_FAILED if errors else 0)
    return code


def _drop_output(stream: TextIO | None) -> None:
    """Discards a stream's rest if it cannot be written: Python would fail again at its exit."""
    try:
        stream.flush()  # type: ignore[union-attr]
    except (AttributeError, OSError):
        with suppress(AttributeError, OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
            os.close(nowhere)
