"""Loads and runs a program on a driver that computes nothing, and says what it gave to the device.

    python load_program.py MODEL [NAME=VALUE ..]          options of vkrt.load

prints "driver" and its name, and for each kind of run "run", its name and its dispatches as JSON:
[shader, [[id, value] of specialization constants], push constants in hexadecimal, workgroups]. A
language program reads the first part of a prompt ("prefill") and a token ("decode"), any other
program has one run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import vkrt
from vkrt.executable.records import DispatchCommand, ExecutionPlan
from vkrt.text.model import LanguageModel, Session
from vkrt.vk.device import Device

# Tokens of a prompt, which a session reads 64, 8 and 2 at a time: few have kernels of their own
PROMPT = 74


def dispatches_of(plan: ExecutionPlan) -> Iterator[list[Any]]:
    """The dispatches of a run."""
    for submission in plan.submissions:
        for command in submission.commands:
            if isinstance(command, DispatchCommand):
                kernel = plan.kernels[command.kernel]
                push = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little")
                                for word in command.push_constants)
                yield [kernel.shader, kernel.constants, push.hex(), command.groups]


def plans_of(program: vkrt.Program, prompt: int | None) -> dict[str, ExecutionPlan]:
    """The plans of the runs that a program had, by the names of these; a language program has read
    so many tokens of a prompt, and of others `prompt` is None."""
    plans = [instance.plan for instance in program.load_method("forward")._loaded.instances]
    if prompt is None:
        return {"run": plans[-1].execution}
    by_tokens = {plan.graph.inputs[0].sizes[1]: plan.execution for plan in plans}
    longest = max(tokens for tokens in by_tokens if tokens <= prompt)
    return {"prefill": by_tokens[longest], "decode": by_tokens[1]}


def main() -> None:
    """Does what the command line says."""
    options: dict[str, Any] = dict(option.split("=", 1) for option in sys.argv[2:])
    with Device.open(pipeline_cache="off") as device:
        print("driver", device.info.driver_info)
        with vkrt.load(sys.argv[1], device, plan_cache="off", **options) as program:
            # Once, for the kernels that pack weights, too
            try:
                session = Session(LanguageModel(program))
            except vkrt.VkrtError:
                program.run(*(np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs))
                prompt = None
            else:
                prompt = min(PROMPT, session.room - 1)
                for ids in ([1] * prompt, [1]):
                    session.add(ids)
                    session.logits()
            for name, plan in plans_of(program, prompt).items():
                print("run", name, json.dumps(list(dispatches_of(plan))))


if __name__ == "__main__":
    main()
