#!/usr/bin/env python3
"""Export random small modules, for tools/check/exported.py.

    python tools/export/random_modules.py --first 0 --count 100 --out FOLDER

Each number is a module (drafts.py): some inputs, a dozen of random expressions, and several
outputs; some with dynamic sizes, buffers that they change, fp16, a storage of their own, or without
delegates. FOLDER gets NUMBER.txt with the module's source, NUMBER.pte and NUMBER.npz: the inputs
and outputs call0_in0, .. call0_out0, .. of calls one after another, as eager PyTorch computes them,
and `own` of them, the relative L2 distances of the same in float64 (call0_own0, ..). A line is
printed for each module that the exporter refuses, or whose exported program gives other numbers in
PyTorch itself.

Needs the same as tools/export/models.py.
"""

import argparse
import contextlib
import copy
import functools
import logging
import signal
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from drafts import Draft, any_tensor, with_forward
from exporting import lower_portable_program, lower_programs
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

LIMIT = 90  # seconds of one export


class Halves(TorchDispatchMode):
    """Every operator's result is rounded to float16."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return tree_map(lambda x: x.half().float() if isinstance(x, torch.Tensor)
                        and x.dtype == torch.float32 else x, func(*args, **(kwargs or {})))


def options_of(draft):
    """How a module is exported: the function that lowers it, and the partitioner's options."""
    from executorch.backends.vulkan.serialization.vulkan_graph_schema import (
        VkMemoryLayout,
        VkStorageType,
    )

    chance, options = draft.chance, {}
    if chance.random() < 0.12 and not draft.initial:
        return lower_portable_program, {}
    if chance.random() < 0.2:
        options["force_fp16"] = True
    if chance.random() < 0.15:
        options["storage_type_override"] = chance.choice(
            (VkStorageType.BUFFER, VkStorageType.TEXTURE_3D))
    if chance.random() < 0.1:
        options["memory_layout_override"] = chance.choice(
            (VkMemoryLayout.TENSOR_CHANNELS_PACKED, VkMemoryLayout.TENSOR_HEIGHT_PACKED))
    if chance.random() < 0.1:
        options["small_texture_limits"] = True
    if chance.random() < 0.1:
        options["skip_bool_tensors"] = True
    if draft.dynamic:
        options["require_dynamic_shapes"] = True
    if draft.initial:
        options["alias_buffer_mutations"] = True
    return lower_program, options


def lower_program(program, options):
    return lower_programs({"forward": program}, options)


def dynamic_shapes_of(draft):
    """Some dimensions of inputs, with bounds; those that the module's text decides become fixed."""
    if not draft.dynamic:
        return None
    shapes = []
    for value in draft.inputs.values():
        shapes.append({dim: torch.export.Dim.AUTO(min=1, max=size)
                       for dim, size in enumerate(value.shape)
                       if size > 1 and draft.chance.random() < 0.6})
    return tuple(shapes)


def calls_of(draft, program):
    """Inputs of several calls, of other sizes where some are dynamic."""
    calls = [list(draft.inputs.values())]
    if draft.initial or not draft.dynamic:
        calls.append([any_tensor(x.shape, x.dtype) for x in calls[0]])
    if not draft.dynamic:
        return calls
    names = {s.arg.name for s in program.graph_signature.input_specs
             if s.kind.name == "USER_INPUT"}
    metas = [n.meta.get("val") for n in program.graph.nodes if n.name in names]
    ranges = program.range_constraints
    for choose in (max, min, None, None, None):
        values = {}
        for symbol, r in ranges.items():
            low, high = int(r.lower), min(int(r.upper), 300)
            values[symbol] = (draft.chance.randint(low, high) if choose is None
                              else choose(low, high))
        inputs = []
        for meta in metas:
            sizes = [int(s) if isinstance(s, int) else int(s.node.expr.subs(values))
                     for s in meta.shape]
            inputs.append(any_tensor(sizes, meta.dtype))
        calls.append(inputs)
    return calls


def results_of(module, inputs):
    """Arrays of the results that are tensors or numbers."""
    with torch.no_grad():
        outputs = module(*[x.clone() for x in inputs])
    return [x.detach().clone().contiguous().numpy() if isinstance(x, torch.Tensor) else np.array(x)
            for x in outputs if x is not None]


def others_of(module, wide, inputs, fp16):
    """Results of the same module in other precisions, which say how much it enlarges roundings."""
    found = []
    higher = {torch.float32: torch.float64, torch.float16: torch.float32}
    with contextlib.suppress(RuntimeError):
        found.append(results_of(wide, [x.to(higher.get(x.dtype, x.dtype)) for x in inputs]))
    if fp16:
        with Halves():
            found.append(results_of(module, inputs))
    return found


def distance(result, expected):
    """The relative L2 distance; of what is no float, how many differ."""
    if result.shape != expected.shape:
        return np.inf
    if expected.dtype.kind != "f":
        return float((result != expected).mean())
    wide = expected.astype(np.float64)
    return float(np.linalg.norm(result - wide) / (np.linalg.norm(wide) or 1.0))


def make(number, folder):
    """Exports a module. Returns what became of it: "ok", or what failed."""
    draft = Draft(number)
    if not draft.results:
        return "nothing"
    source = draft.source()
    (folder / f"{number}.txt").write_text(source)
    wide = draft.wide()
    module = with_forward(draft.module, source)
    shapes = dynamic_shapes_of(draft)
    lowering, options = options_of(draft)
    for name, value in draft.initial.items():
        getattr(module, name).copy_(value)
        getattr(wide, name).copy_(value)
    inputs = tuple(draft.inputs.values())
    program = torch.export.export(copy.deepcopy(module), inputs, dynamic_shapes=shapes,
                                  strict=False)
    data = lowering(program, options)
    exported = program.module()
    arrays = {"options": np.array([lowering.__name__, *options])}
    count = 0
    for call in calls_of(draft, program):
        try:
            again = results_of(exported, call)
        except (AssertionError, RuntimeError):
            continue  # sizes that the program refuses
        before = copy.deepcopy(module)
        outputs = results_of(module, call)
        if any(distance(a, b) > 1e-5 for a, b in zip(again, outputs, strict=True)):
            return "the exported program gives other numbers"
        if not all(np.isfinite(y).all() for y in outputs):
            continue
        others = others_of(before, wide, call, "force_fp16" in options)
        arrays |= {f"call{count}_in{i}": x.numpy() for i, x in enumerate(call)}
        arrays |= {f"call{count}_out{i}": y for i, y in enumerate(outputs)}
        arrays |= {f"call{count}_own{i}": max((distance(o[i], y) for o in others), default=0.0)
                   for i, y in enumerate(outputs)}
        count += 1
    (folder / f"{number}.pte").write_bytes(data)
    np.savez_compressed(folder / f"{number}.npz", **arrays)
    return f"ok{', dynamic' if program.range_constraints else ''}"


def cache_patterns():
    """Has the partitioner export the patterns that it looks for once, not for each module."""
    from executorch.backends.vulkan.patterns import fusable_patterns

    for entry in fusable_patterns.values():
        if entry.get_graphs_fn is not None:
            entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)


def stop(*_):
    raise TimeoutError(f"no end after {LIMIT} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGALRM, stop)
    torch.set_num_threads(1)
    cache_patterns()
    outcomes = Counter()
    for number in range(options.first, options.first + options.count):
        signal.alarm(LIMIT)
        try:
            outcome = make(number, options.out)
        except Exception as error:  # whatever an exporter raises
            outcome = "refused"
            line, *_ = str(error).strip().splitlines() or [""]
            print(f"{number}: {type(error).__name__}: {line}"[:300], flush=True)
        signal.alarm(0)
        outcomes[outcome] += 1
        if outcome.startswith("the"):
            print(f"{number}: {outcome}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))


if __name__ == "__main__":
    main()
