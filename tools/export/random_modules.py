#!/usr/bin/env python3
"""Export random small modules, for tools/check/exported.py.

    python tools/export/random_modules.py FOLDER [--first 0] [--count 100]

Each number is a module (module_sources.py): some inputs, a dozen of random expressions, and several
outputs; some with dynamic sizes, a buffer that they change, fp16, a storage of their own, or
without delegates. FOLDER gets NUMBER.txt with the module's source, NUMBER.pte and NUMBER.npz: the
inputs and outputs call0_in0, .. call0_out0, .. of calls one after another, as eager PyTorch
computes them, and call0_own0, .., how far the same is off in other precisions (relative L2). A
line is printed for each module that the exporter refuses, or whose exported program gives other
numbers in PyTorch itself.

Needs the same as tools/export/models.py.
"""

import contextlib
import copy
import functools

import numpy as np
import torch
from executorch.backends.vulkan.patterns import fusable_patterns
from executorch.backends.vulkan.serialization.vulkan_graph_schema import (
    VkMemoryLayout,
    VkStorageType,
)
from exporting import arrays_of, lower_portable_program, lower_programs
from module_sources import ModuleSource, random_tensor
from random_programs import export_numbers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

# How often the partitioner has an option, and its values
OPTIONS = {
    "force_fp16": (0.2, (True,)),
    "storage_type_override": (0.15, (VkStorageType.BUFFER, VkStorageType.TEXTURE_3D)),
    "memory_layout_override": (0.1, (VkMemoryLayout.TENSOR_CHANNELS_PACKED,
                                     VkMemoryLayout.TENSOR_HEIGHT_PACKED)),
    "small_texture_limits": (0.1, (True,)),
    "skip_bool_tensors": (0.1, (True,)),
}


class Halves(TorchDispatchMode):
    """Every operator's result is rounded to float16."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return tree_map(lambda x: x.half().float() if isinstance(x, torch.Tensor)
                        and x.dtype == torch.float32 else x, func(*args, **(kwargs or {})))


def options_of(source):
    """The partitioner's options; None if there are no delegates."""
    if source.chance.random() < 0.12 and not source.has_state:
        return None
    options = {name: source.chance.choice(values) for name, (often, values) in OPTIONS.items()
               if source.chance.random() < often}
    return options | {name: True for name, is_so in (
        ("require_dynamic_shapes", source.is_dynamic),
        ("alias_buffer_mutations", source.has_state)) if is_so}


def dynamic_shapes_of(source):
    """Some dimensions of inputs, with bounds; those that the module's text decides become fixed."""
    if not source.is_dynamic:
        return None
    return tuple({dim: torch.export.Dim.AUTO(min=1, max=size) for dim, size in enumerate(x.shape)
                  if size > 1 and source.chance.random() < 0.6} for x in source.inputs.values())


def calls_of(source, program):
    """Inputs of several calls, of other sizes where some are dynamic."""
    calls = [list(source.inputs.values())]
    if source.has_state or not source.is_dynamic:
        calls.append([random_tensor(x.shape, x.dtype) for x in calls[0]])
    if not source.is_dynamic:
        return calls
    names = program.graph_signature.user_inputs
    values = [node.meta["val"] for node in program.graph.nodes if node.name in names]
    for choose in (max, min, *[source.chance.randint] * 3):
        sizes = {symbol: choose(int(bounds.lower), min(int(bounds.upper), 300))
                 for symbol, bounds in program.range_constraints.items()}
        calls.append([random_tensor([int(s) if isinstance(s, int) else int(s.node.expr.subs(sizes))
                                     for s in value.shape], value.dtype) for value in values])
    return calls


def results_of(module, inputs):
    """Arrays of the results that are tensors or numbers; the inputs stay as they are."""
    with torch.no_grad():
        outputs = module(*[x.clone() for x in inputs])
    return [x.clone().contiguous().numpy() if isinstance(x, torch.Tensor) else np.array(x)
            for x in outputs if x is not None]


def results_in_other_precisions(module, wide, inputs, is_fp16):
    """Results of the same module, which say how much it enlarges roundings."""
    results = []
    higher = {torch.float32: torch.float64, torch.float16: torch.float32}
    with contextlib.suppress(RuntimeError):
        results.append(results_of(wide, [x.to(higher.get(x.dtype, x.dtype)) for x in inputs]))
    if is_fp16:
        with Halves():
            results.append(results_of(module.half().float(), [
                x.half().float() if x.dtype == torch.float32 else x for x in inputs]))
    return results


def distance(result, expected):
    """The relative L2 distance."""
    if result.shape != expected.shape:
        return np.inf
    wide = expected.astype(np.float64)
    return float(np.linalg.norm(result - wide) / (np.linalg.norm(wide) or 1.0))


def make(number, folder):
    """Writes the files of a module."""
    source = ModuleSource(number)
    (folder / f"{number}.txt").write_text(str(source))
    module, wide = source.modules()
    shapes, options = dynamic_shapes_of(source), options_of(source)
    program = torch.export.export(copy.deepcopy(module), tuple(source.inputs.values()),
                                  dynamic_shapes=shapes, strict=False)
    data = (lower_portable_program(program) if options is None
            else lower_programs({"forward": program}, options))
    exported = program.module()
    arrays, count = {"options": np.array(list(options or ()), str)}, 0
    for inputs in calls_of(source, program):
        try:
            again = results_of(exported, inputs)
        except (AssertionError, RuntimeError):
            continue  # sizes that the program refuses
        before = copy.deepcopy(module)
        outputs = results_of(module, inputs)
        if any(distance(a, b) > 1e-5 for a, b in zip(again, outputs, strict=True)):
            raise ValueError("the exported program gives other numbers")
        if not all(np.isfinite(y).all() for y in outputs):
            continue
        others = results_in_other_precisions(before, wide, inputs, "force_fp16" in (options or ()))
        arrays |= arrays_of(inputs, outputs, f"call{count}_")
        arrays |= {f"call{count}_own{i}": max((distance(o[i], y) for o in others), default=0.0)
                   for i, y in enumerate(outputs)}
        count += 1
    (folder / f"{number}.pte").write_bytes(data)
    np.savez_compressed(folder / f"{number}.npz", **arrays)


def main():
    # The partitioner exports the patterns that it looks for once, not for each module.
    for entry in fusable_patterns.values():
        if entry.get_graphs_fn is not None:
            entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)
    export_numbers(__doc__.splitlines()[0], make, 100)


if __name__ == "__main__":
    main()
