"""What the tools that export programs share: exporting, looking inside, the command line."""

import argparse
import json
import logging
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

SEED = 20240229
ROOT = Path(__file__).resolve().parent.parent.parent


def lower(module, inputs, dynamic_shapes=None, **options):
    """Export ``module`` for the Vulkan backend and return the bytes of the .pte file.

    ``options`` are the partitioner's compile options, for instance ``force_fp16=True``; those
    that are False are left out, because the exporter would store them in the program.
    """
    if dynamic_shapes is not None:
        options["require_dynamic_shapes"] = True
    return lower_methods({"forward": (module, inputs)}, dynamic_shapes, **options)


def lower_methods(methods, dynamic_shapes=None, **options):
    """The same for a program of several methods: name -> (module, inputs)."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    logging.getLogger().setLevel(logging.WARNING)  # the partitioner lists every node otherwise
    warnings.filterwarnings("ignore", category=FutureWarning)  # executorch's own use of torch
    options = {k: v for k, v in options.items() if v is not False}
    edge = to_edge_transform_and_lower(
        {name: torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes, strict=False)
         for name, (module, inputs) in methods.items()},
        partitioner={name: [VulkanPartitioner(options)] for name in methods},
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    return edge.to_executorch().buffer


class JsonWithInfinities:
    """What the exporter's serializer uses of ``json``; reads ``inf`` and ``nan`` too."""

    dumps = json.dumps

    @staticmethod
    def load(file):
        text = file.read()
        text = text if isinstance(text, str) else text.decode()
        return json.loads(re.sub(r"(?<=[\s:,\[])(-?)inf(?=[\s,\]}])", r"\1Infinity", text))


def describe(pte):
    """Return the steps of a .pte file, given as bytes, in the order in which they run.

    Each step is ``(name, operators)``: for a delegate call the delegate's name and the list of the
    operators in it, for a CPU kernel its name and None.
    """
    from executorch.backends.vulkan.serialization import vulkan_graph_serialize as serialize
    from executorch.exir._serialize._program import deserialize_pte_binary

    # It goes by way of JSON, in which its tool writes infinities as Python does not read them.
    serialize.json = JsonWithInfinities
    program = deserialize_pte_binary(bytes(pte)).program
    plan = program.execution_plan[0]
    steps = []
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        kind = type(call).__name__
        if kind == "KernelCall":
            op = plan.operators[call.op_index]
            steps.append((f"{op.name}.{op.overload}", None))
        elif kind == "DelegateCall":
            delegate = plan.delegates[call.delegate_index]
            blob = bytes(program.backend_delegate_data[delegate.processed.index].data)
            graph = serialize.flatbuffer_to_vk_graph(serialize.extract_vk_flatbuffer(blob))
            steps.append((delegate.id, [node.name for node in graph.chain]))
    return steps


def print_steps(steps, file=sys.stdout):
    """Print what ``describe`` returned, with equal operators of a delegate counted."""
    for name, operators in steps:
        if operators is None:
            print(f"    CPU kernel {name}", file=file)
            continue
        counted = []
        for op in dict.fromkeys(operators):
            times = operators.count(op)
            counted.append(f"{op} x{times}" if times > 1 else op)
        print(f"    {name}: {', '.join(counted)}", file=file)


def run_eager(module, inputs):
    """Run the module with eager PyTorch and return its outputs as a flat list of arrays."""
    with torch.no_grad():
        outputs = module(*inputs)
    if isinstance(outputs, torch.Tensor):
        outputs = (outputs,)
    return [t.contiguous().numpy() for t in outputs]


def arrays_of(inputs, outputs, prefix=""):
    """Inputs (tensors) and outputs (arrays) by their names in an .npz file, in0.. and out0.. ."""
    return {**{f"{prefix}in{i}": t.numpy() for i, t in enumerate(inputs)},
            **{f"{prefix}out{i}": a for i, a in enumerate(outputs)}}


def save(path, pte, arrays, max_bytes=None):
    """Write a program and its arrays beside it; none of them may be larger than ``max_bytes``."""
    path.write_bytes(pte)
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    sizes = len(pte), path.with_suffix(".npz").stat().st_size
    print(f"{path.stem}: program {sizes[0]} bytes, arrays {sizes[1]} bytes")
    if max_bytes and max(sizes) > max_bytes:
        raise SystemExit(f"{path.stem}: larger than {max_bytes} bytes")


def export(path, module, inputs, max_bytes=None, **options):
    """Export a module and what eager PyTorch makes of its inputs; return the program's bytes."""
    outputs = run_eager(module, inputs)
    if not all(np.isfinite(a).all() for a in outputs):
        raise SystemExit(f"{path.stem}: an output is not finite")
    pte = lower(module, inputs, **options)
    save(path, pte, arrays_of(inputs, outputs), max_bytes)
    return pte


def run_tool(what, programs, make, folder=None, **choices):
    """Read the command line of a tool that makes programs, and make them.

    Args:
        what: the tool's description.
        programs: by name.
        make: called with the path that a program of a name is to have, always after the same seed.
        folder: of this repository's programs, such as "tests/models"; the current one by default.
        choices: further options and their values, the first of which is the default; they are
            passed on to ``make``.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("name", nargs="*", help="programs to make (default: all)")
    parser.add_argument("--out", type=Path, default=Path(ROOT / folder if folder else "."),
                        help=f"folder for the files (default: {folder or 'the current one'})")
    parser.add_argument("--list", action="store_true", help="print the programs' names and stop")
    for name, values in choices.items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    options = parser.parse_args()
    if options.list:
        print("\n".join(programs))
        return
    unknown = [name for name in options.name if name not in programs]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.name or programs:
        torch.manual_seed(SEED)
        make(options.out / f"{name}.pte", **{choice: getattr(options, choice)
                                             for choice in choices})
