"""What a process of test_profiles.py does: it copies buffers where an image's layout has to change.
The copies are put there, because spills are seldom where images are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from support import open_method

from vkrt.compiler import compiler
from vkrt.graph.graph import Graph, Node
from vkrt.plan.barriers import barriers, transitions
from vkrt.vk.device import Device
from vkrt.work.records import Move
from vkrt.work.tensor import Operand, Storage, StorageList, Tensor

SIZES = (2, 3, 4, 5)


unpatched_lower = compiler.lower


def whole(storage: Storage) -> Operand:
    return Operand(storage, (storage.nbytes // 4,), storage.dtype, (0,), raw=True)


def lower_with_moves(*arguments: Any) -> Any:
    """Lowers, and puts copies around the work: of the input, of the copy, and of both at the end,
    so that nothing else has their memory. The second one waits for the first, and the first image
    is used behind it."""
    work = unpatched_lower(*arguments)
    storages = StorageList(list(work.storages))
    source = work.inputs[0].storage
    first, second, *ends = (storages.new("activation", source.nbytes, source.dtype)
                            for _ in range(4))

    def move(target: Storage, origin: Storage) -> Move:
        return Move(0, "spill", (whole(target),), (whole(origin),))

    return replace(work, storages=tuple(storages.items), steps=(
        move(first, source), move(second, first), *work.steps,
        *(move(end, kept) for end, kept in zip(ends, (first, second)))))


def run_moves() -> None:
    """Runs it twice, and prints that the results are right."""
    x, kept, result = (Tensor(SIZES, "float32", name=name) for name in ("x", "kept", "result"))
    graph = Graph("moves", [x], [result], [Node("aten.relu.default", (x,), (kept,), "0"),
                                           Node("aten.neg.default", (kept,), (result,), "1")])
    array = np.random.default_rng(0).standard_normal(SIZES).astype(np.float32)
    with Device.open() as device, patch.object(compiler, "lower", lower_with_moves), \
            open_method(graph.finish(), b"", device, storage="texture3d") as method:
        moved = transitions(method.work, method.plan, barriers(method.work, method.plan))
        assert any(isinstance(method.work.steps[step], Move) and step for step in moved), moved
        for _ in range(2):
            found, = method.execute([array])
            np.testing.assert_array_equal(found, -np.maximum(array, 0))
    print("right")
