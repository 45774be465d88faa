"""Runs on buffers of the host's device, for the C library: begun by one call, waited for by
another."""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.capi.handles import method_of, programs, runs, state_of
from vkrt.executable.external_buffers import DeviceBuffer, Semaphore


def submit(program: int, method: str | None, state: int, inputs: Sequence[DeviceBuffer],
           outputs: Sequence[DeviceBuffer], waits: Sequence[Semaphore],
           signals: Sequence[Semaphore]) -> int:
    """Begins a run, see `vkrt.Program.run_async`; returns the bytes that the device copies."""
    loaded = method_of(programs.get(program), method)
    run = loaded.start(inputs, outputs, state_of(loaded, state), waits, signals)
    runs[program, loaded.metadata.name] = run
    return run.copied_bytes


def wait(program: int, method: str | None) -> None:
    """Waits for the run that was submitted last, and raises what went wrong in it."""
    run = runs.get((program, method_of(programs.get(program), method).metadata.name))
    if run is not None:
        run.result()
