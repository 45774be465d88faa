"""What the commands share: arguments, the options of loading a program, exit codes, output."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from typing import Any

from vkrt.errors import InputError
from vkrt.plan.options import LoadOptions

EXIT_USAGE = 2
EXIT_UNSUPPORTED = 3
EXIT_PIPE = 141  # as a shell reports the end by SIGPIPE

# Older names of options, from before they had the API's names
ALIASES = {"memory_budget": "--budget", "stream_lookahead": "--lookahead", "data_path": "--data"}


def add_model(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """The program, the device, and where the program's other data is."""
    if several:
        parser.add_argument("models", nargs="+", metavar="model", help="a .pte file")
    else:
        parser.add_argument("model", help="a .pte file")
    add_device(parser)
    parser.add_argument(*_names("data_path"), action="append", default=[], metavar="FILE",
                        help="a .ptd file with constants of the program, once per file "
                             "(default: none)")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Which device is used, see `device_of`."""
    parser.add_argument("--device", help="index or part of the name of a device, or discrete, "
                                         "integrated, virtual or cpu (default: the best one, in "
                                         "this order)")


def add_flag(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """An option that is off by default."""
    parser.add_argument(name, action="store_true", help=f"{what} (default: no)")


def add_value(parser: argparse.ArgumentParser, *names: str, default: str | float, what: str,
              metavar: str | None = None, parse: Any = None) -> None:
    """An option with a value of the default's type, or parsed by a function of its own."""
    shown = f"{default:g}" if isinstance(default, float) else default
    parser.add_argument(*names, type=parse or type(default), default=default, metavar=metavar,
                        help=f"{what} (default: {shown})")


def add_method(parser: argparse.ArgumentParser) -> None:
    add_value(parser, "--method", default="forward", what="which method runs")


def add_repeat(parser: argparse.ArgumentParser, default: int, what: str) -> None:
    add_value(parser, "--repeat", default=default, metavar="N", what=what, parse=_positive)


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def sizes_of(word: str) -> tuple[tuple[int, ...], ...]:
    """The sizes of all inputs, as `--shape` has them; "-" stands for a number."""
    try:
        return tuple(tuple(map(int, sizes.split(","))) if sizes != "-" else ()
                     for sizes in word.split())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{word!r}: expected the sizes of each input, such as "
                                         "'1,3,224,224' or '1,64 1'") from error


def add_json(parser: argparse.ArgumentParser) -> None:
    """The choice between output for people and for programs."""
    parser.add_argument("--json", action="store_true",
                        help="machine-readable output (default: text)")


def add_load_options(parser: argparse.ArgumentParser, *names: str, **changes: Any) -> None:
    """The options of `LoadOptions`.

    Args:
        names: only these; all by default.
        changes: by option, further arguments of `add_argument`; "more" is appended to the help.
    """
    for option in fields(LoadOptions):
        if names and option.name not in names:
            continue
        data = option.metadata
        other = dict(changes.get(option.name, {}))
        text = data["help"] + other.pop("more", "")
        if option.default is not None:
            text += f" (default: {option.default})"
        if data["parse"] is bool:
            parser.add_argument(*_names(option.name), action=argparse.BooleanOptionalAction,
                                default=None, help=text)
            continue
        parser.add_argument(*_names(option.name), type=_parser(data["parse"]), help=text,
                            default=option.default, choices=data["choices"] or None,
                            metavar=data["metavar"], **other)


def load_options(options: argparse.Namespace) -> LoadOptions:
    given = {option.name: getattr(options, option.name) for option in fields(LoadOptions)}
    return LoadOptions(**{**given, "memory_budget": options.memory_budget or None})


def device_of(name: str | None) -> int | str | None:
    """The `device` of `vkrt.load` for a name on the command line."""
    return int(name) if name is not None and name.isdigit() else name


def show(options: argparse.Namespace, data: Any, text: str) -> None:
    """Prints a result: the data with --json, the text without."""
    print(json.dumps(data, indent=2) if options.json else text)


def _names(name: str) -> list[str]:
    alias = ALIASES.get(name)
    return [f"--{name.replace('_', '-')}", *([alias] if alias else [])]


def _parser(parse: Any) -> Any:
    """A parse function for argparse, which shows the message of an ArgumentTypeError only."""
    if parse in (str, int):
        return parse

    def parsed(word: str) -> Any:
        try:
            return parse(word)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed
