"""Traces: a load and a profiled run for chrome://tracing and Perfetto.

The format is the "Trace Event Format" of Chrome: JSON with events of phase M (names of tracks),
X (something with a duration) and C (a counter); times are microseconds.
"""

from __future__ import annotations

import json
import os
from typing import Any

from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.method.profile import Profile
from vkrt.report.memory import MemoryReport

# What every trace begins with
MAGIC = b'{"traceEvents": ['
# Tracks of the one process that a trace shows
HOST, DEVICE = 1, 2


def trace_events(report: MemoryReport, profile: Profile) -> list[dict[str, Any]]:
    """The events of a load and of the last run that was profiled, times from the load's start."""
    began = min((span.start for span in report.stopwatch.spans), default=profile.timeline[0])
    began = min(began, report.phases[0].at)
    events = [_name("process_name", HOST, f"vkrt on {profile.device}"),
              _name("thread_name", HOST, "host"),
              _name("thread_name", DEVICE, f"device, clock {profile.clock}")]
    for span in report.stopwatch.spans:
        events.append(_complete(span.name, "load", HOST, span.start - began, span.seconds,
                                {"cpu_ms": round(span.cpu * 1e3, 3)}))
    for phase in report.phases:
        at = _micro(phase.at - began)
        events.append({"name": "device memory", "ph": "C", "pid": 1, "ts": at,
                       "args": {"bytes": phase.device}})
        if phase.process:
            events.append({"name": "process memory", "ph": "C", "pid": 1, "ts": at,
                           "args": {key: phase.process.get(key, 0)
                                    for key in ("RssAnon", "RssFile")}})
    start, end, times = profile.timeline
    events.append(_complete(f"profiled run of {profile.method}", "run", HOST, start - began,
                            end - start, {}))
    for step, (at, seconds) in zip(profile.steps, times):
        track = HOST if step.kind == "host" else DEVICE
        events.append(_complete(step.operator, step.kind, track, at - began, seconds, {
            "node": step.node, "kernel": step.kernel, "groups": step.groups,
            "local_size": step.local_size, "bytes_read": step.bytes_read,
            "bytes_written": step.bytes_written, "flops": step.flops}))
    return events


def check_trace(path: str | os.PathLike[str]) -> None:
    """Raises InputError if another file is there, also if that is another program's trace."""
    check_replaceable(path, lambda head: head.startswith(MAGIC) and b'"vkrt on ' in head,
                      "a trace of vkrt's", renames=False)


def write_trace(path: str | os.PathLike[str], report: MemoryReport, profile: Profile) -> None:
    """Writes a trace (InputError: another file is there)."""
    check_trace(path)
    with replacing(path) as file:
        file.write(json.dumps({"traceEvents": trace_events(report, profile),
                               "displayTimeUnit": "ms"}).encode())


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _name(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}


def _complete(name: str, category: str, track: int, start: float, seconds: float,
              arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": category, "ph": "X", "pid": 1, "tid": track, "ts": _micro(start),
            "dur": _micro(seconds), "args": arguments}
