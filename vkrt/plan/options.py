"""The options of loading a program: names, values allowed, defaults and a sentence about each. The
command's options are generated from them, and a test compares the docstring of `vkrt.load` with
them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from vkrt.device.policy import SPECIALIZE, STORAGES, WINOGRAD, skipped_passes
from vkrt.errors import InputError
from vkrt.memory.strategies import STRATEGIES
from vkrt.vk.cache_folder import check_option
from vkrt.work.option_values import CACHES, DEFAULT_CHUNK, ORDERS, PREFERENCES, WEIGHTS

# A memory budget of as few bytes as possible
SMALLEST = "smallest"

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_bytes(value: int | str) -> int:
    """Bytes from a number or a text such as "300MB" (10^6) or "256MiB" (2^20).

    Raises:
        InputError: it is neither, or not positive.
    """
    number = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        unit = _UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise InputError(f"{value!r}: expected bytes, such as 300MB, 1.5GB or 256MiB")
        number = int(float(match[1]) * unit)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"{value!r}: expected a positive number of bytes")
    return number


def _option(default: Any, text: str, *, choices: Sequence[str] = (), metavar: str | None = None,
            parse: Callable[[str], Any] = str) -> Any:
    """A field of `LoadOptions`.

    Args:
        text: what it is, in words for the user; where the default is None, also what that means.
        choices: the values allowed; without any, `__post_init__` checks the value.
        metavar: what stands for the value in the command's help.
        parse: makes the value from a word on the command line.
    """
    return field(default=default, metadata={"help": text, "choices": tuple(choices),
                                            "metavar": metavar, "parse": parse})


@dataclass(frozen=True)
class LoadOptions:
    """How a program is loaded; `vkrt.load` says more about each.

    Raises:
        InputError: a value is not one of those allowed.
    """

    storage: str = _option("auto", "how tensors are stored", choices=("auto", *STORAGES))
    weights: str = _option("auto", "how weights get from the file to the kernels", choices=WEIGHTS)
    memory_budget: int | str | None = _option(
        None, "the maximum of bytes on the device, such as 300MB, or \"smallest\"; weights that do "
        "not fit are streamed (default: no maximum)", metavar="BYTES")
    stream_lookahead: int | None = _option(
        None, "how many sync points ahead of its use a streamed weight begins to load, 0 for no "
        "overlap (default: what the plan finds best)", metavar="N", parse=int)
    prefetch: str = _option("auto", "how the file is read", choices=("auto", *STRATEGIES))
    keep_cached: bool | None = _option(
        None, "whether the system's cache may keep what was copied from the file (default: only "
        "where the file is small beside the machine's memory)", parse=bool)
    winograd: str = _option("auto", "whether 3x3 convolutions run in Winograd's transformed domain",
                            choices=WINOGRAD)
    prefer: str = _option(
        "balanced", "whether activations take as little memory as possible, in more and smaller "
        "dispatches (\"memory\"), or more where that is faster (\"speed\")", choices=PREFERENCES)
    cache: str = _option(
        "float", "whether caches of keys and values are kept as the program has them, or in 8 bits "
        "with a scale for each head of a row", choices=CACHES)
    fusions: str = _option(
        "on", "whether kernels do what follows them too, such as activations: \"on\", \"off\", or "
        "names of passes to leave out, each with \"no-\" in front and commas between",
        metavar="FUSIONS")
    specialize: str = _option(
        "few", "which sizes are compiled into the kernels: the few that the driver's profile "
        "names, all of them or none", choices=SPECIALIZE)
    pipeline_cache: str | os.PathLike[str] = _option(
        "auto", "the file that keeps the driver's compiled pipelines, \"off\", or \"auto\" for one "
        "in the user's cache folder", metavar="FILE")
    plan_cache: str | os.PathLike[str] = _option(
        "auto", "the folder that keeps what was worked out for a program, \"off\", or \"auto\" for "
        "the one in the user's cache folder", metavar="FOLDER")
    order: str = _option("lazy", "whether the arena is allocated after the weights are packed, or "
                         "before", choices=ORDERS)
    chunk: int = _option(DEFAULT_CHUNK, "the maximum size of the staging buffer, such as 8MiB",
                         metavar="BYTES", parse=parse_bytes)

    def __post_init__(self):
        for option in fields(self):
            value, choices = getattr(self, option.name), option.metadata["choices"]
            if choices and value not in choices:
                raise InputError(f"{option.name}={value!r}: expected one of {', '.join(choices)}")
        _ = self.budget
        if self.stream_lookahead is not None and self.stream_lookahead < 0:
            raise InputError(f"stream_lookahead={self.stream_lookahead}: expected 0 or more")
        skipped_passes(self.fusions)
        check_option(self.pipeline_cache)
        if not isinstance(self.plan_cache, (str, os.PathLike)) or not os.fspath(self.plan_cache):
            raise InputError(f"plan_cache={self.plan_cache!r}: expected 'auto', 'off' or a folder")

    @property
    def has_budget(self) -> bool:
        """Whether device memory is to be saved by streaming weights."""
        return self.memory_budget is not None or self.weights == "stream"

    @property
    def budget(self) -> int | None:
        """The memory budget in bytes; None without one, and for as few bytes as possible."""
        if self.memory_budget is None or self.memory_budget == SMALLEST:
            return None
        try:
            return parse_bytes(self.memory_budget)
        except InputError as error:
            raise InputError(f"memory_budget={error}, or '{SMALLEST}'") from error
