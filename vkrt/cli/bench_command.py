"""`vkrt bench`: how long programs take to load and to run, also beside PyTorch."""

from __future__ import annotations

from typing import Any

from vkrt.cli.bench import Load, Result, Times, bench
from vkrt.cli.reference import load_reference
from vkrt.errors import InputError
from vkrt.plan.options import LoadOptions
from vkrt.report.columns import columns
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
    rows: list[tuple[str, ...]] = [
        ("model", "load, cold", "warm", "first run", "median", "least", "GFLOP/s")]
    after = []
    for result in results:
        rows.append((result.model.rsplit("/", 1)[-1], _load(result.cold), _load(result.warm),
                     _load(result.first), *_times(result.times, result.flops)))
        if result.reference is not None:
            rows.append((str(against), "", "", "", *_times(result.reference, result.flops)))
            after.append(f"{result.times.median / result.reference.median:.2f} times the time of "
                         f"the reference, relative L2 error {result.error:.2g}")
        if result.cold_why:
            after.append(f"{result.model}: no cold load, {result.cold_why}")
    return "\n".join([f"{results[0].device}, {results[0].runs} runs; ms (CPU ms)",
                      *columns(rows), *after])


def _load(load: Load | None) -> str:
    return "-" if load is None else f"{1e3 * load.seconds:.1f} ({1e3 * load.cpu:.1f})"


def _times(times: Times, flops: int) -> tuple[str, ...]:
    """The cells "median", "least" and "GFLOP/s"."""
    return (f"{1e3 * times.median:.2f} ({1e3 * times.cpu:.2f})", f"{1e3 * times.least:.2f}",
            f"{flops / times.median / 1e9:.2f}")
