"""`vkrt bench`: how long programs take to load and to run, also beside PyTorch."""

from __future__ import annotations

from typing import Any

from vkrt.bench import Load, Result, Times, bench
from vkrt.errors import InputError
from vkrt.options import LoadOptions
from vkrt.reference import load_reference
from vkrt.vk.device import Device


def describe(options: Any, device: Any, load_options: LoadOptions) -> tuple[list[Any], str]:
    """Does what the command says; the results for JSON, and as lines of text."""
    reference = None
    if options.against is not None:
        if len(options.models) != 1:
            raise InputError("--against compares one model; pass one")
        reference = load_reference(options.against)
    with Device.open(device, pipeline_cache=load_options.pipeline_cache) as opened:
        results = [bench(model, opened, load_options, runs=options.runs, method=options.method,
                         reference=reference) for model in options.models]
    return [result.as_dict() for result in results], text(results, options.against)


def text(results: list[Result], against: str | None) -> str:
    """The results as lines of text, times in milliseconds with those of all CPUs in brackets."""
    lines = [f"{results[0].device}, {results[0].runs} runs; ms (CPU ms)",
             f"{'model':<32}{'load, cold':>16}{'warm':>16}{'first run':>16}{'median':>16}"
             f"{'least':>9}{'GFLOP/s':>9}"]
    for result in results:
        name = result.model.rsplit("/", 1)[-1]
        lines.append(f"{name:<32}{_load(result.cold):>16}{_load(result.warm):>16}"
                     f"{_load(result.first):>16}" + _times(result.times)
                     + f"{result.flops / result.times.median / 1e9:>9.2f}")
        if result.reference is not None:
            lines.append(f"{against:<80}" + _times(result.reference)
                         + f"{result.flops / result.reference.median / 1e9:>9.2f}")
            lines.append(f"{result.times.median / result.reference.median:.2f} times the time of "
                         f"the reference, relative L2 error {result.error:.2g}")
    lines += [f"{result.model}: no cold load, {result.cold_why}" for result in results
              if result.cold_why]
    return "\n".join(lines)


def _load(load: Load | None) -> str:
    return "-" if load is None else f"{1e3 * load.seconds:.1f} ({1e3 * load.cpu:.1f})"


def _times(times: Times) -> str:
    return f"{1e3 * times.median:.2f} ({1e3 * times.cpu:.2f})".rjust(16) \
        + f"{1e3 * times.least:>9.2f}"
