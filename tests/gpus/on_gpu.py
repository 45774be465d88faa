"""What a process on the driver of a GPU does: loads, plans, records and submits programs.

    python on_gpu.py '[{"model": "tests/models/mlp.pte", "storage": "texel"}, ..]'

prints a line of JSON for each of these jobs, with the bytes that were planned and measured, and the
message of what failed. Nothing computes on such a driver, so results are looked at by nobody; with
VKRT_VALIDATION=1 messages of the layer are failures.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import calls_of, inputs_of, ready_device

import vkrt
from vkrt.vk import clear_validation_messages, live_objects, validation_messages

# Arguments of load, and of a job beside these
OPTIONS = ("storage", "weights", "memory_budget")


def calls_to_make(path: Path, program) -> list[list[np.ndarray]]:
    """Inputs of all calls and steps that lie beside the program, or some of the largest sizes."""
    try:
        found = [inputs for kind in ("", "call", "step") for inputs, _ in calls_of(path, kind)]
    except FileNotFoundError:
        return [inputs_of(program)] * 2
    dtypes = [info.dtype for info in program.metadata().inputs]
    # The last one has the largest sizes, for which memory is planned.
    return [*([array.astype(dtype) if dtype == "float16" else array
               for array, dtype in zip(inputs, dtypes)] for inputs in found if inputs),
            inputs_of(program)]


def run(device, job: dict[str, Any]) -> dict[str, Any]:
    """Does a job twice or more, and says what it took."""
    path = Path(job["model"])
    options = {name: job[name] for name in OPTIONS if name in job}
    with vkrt.load(path, device, plan_cache="off", **options) as program:
        for inputs in calls_to_make(path, program):
            program.run(*inputs)
        memory = program.memory
        return {"planned": memory.planned_peak, "measured": memory.measured_peak,
                "notes": list(memory.notes)}


def main() -> None:
    with ready_device() as device:
        before = live_objects()
        for job in json.loads(sys.argv[1]):
            try:
                said = run(device, job)
            except vkrt.VkrtError as error:
                said = {"error": f"{type(error).__name__}: {error}"}
            left = {kind: count for kind, count in live_objects().items()
                    if count > before.get(kind, 0)}
            said |= {"left": left, "validation": validation_messages()}
            clear_validation_messages()
            print(json.dumps({**job, **said}), flush=True)


if __name__ == "__main__":
    main()
