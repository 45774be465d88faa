"""What the tools that export programs share: exporting, saving, the command line."""

import argparse
import logging
import warnings
from pathlib import Path

import numpy as np
import torch

SEED = 20240229
ROOT = Path(__file__).resolve().parent.parent.parent


class Module(torch.nn.Module):
    """A module of one function and the layers it uses."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def lower(module, inputs, dynamic_shapes=None, **options):
    """Export ``module`` for the Vulkan backend and return the bytes of the .pte file.

    ``options`` are the partitioner's compile options, for instance ``force_fp16=True``; those
    that are False are left out, because the exporter would store them in the program.
    """
    if dynamic_shapes is not None:
        options["require_dynamic_shapes"] = True
    return lower_methods({"forward": (module, inputs)}, dynamic_shapes, **options)


def names_of(program, method="forward"):
    """The constant method that tells vkrt what the arguments of an exported program's module are
    called, for ``constant_methods=``."""
    return {f"{method}_input_names": [spec.arg.name for spec in program.graph_signature.input_specs
                                      if spec.kind.name == "USER_INPUT"]}


def lower_methods(methods, dynamic_shapes=None, names=False, **options):
    """The same for a program of several methods: name -> (module, inputs).

    ``names``: whether the program has the names of the modules' arguments, too.
    """
    options = {k: v for k, v in options.items() if v is not False}
    programs = {name: torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes,
                                          strict=False)
                for name, (module, inputs) in methods.items()}
    constants = {}
    for name, program in programs.items() if names else ():
        constants |= names_of(program, name)
    return lower_programs(programs, options, constants)


def lower_programs(programs, options, constants=None):
    """The same for exported programs by name."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    logging.getLogger().setLevel(logging.WARNING)  # the partitioner lists every node otherwise
    warnings.filterwarnings("ignore", category=FutureWarning)  # executorch's own use of torch
    edge = to_edge_transform_and_lower(
        programs,
        partitioner={name: [VulkanPartitioner(options)] for name in programs},
        constant_methods=constants or None,
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    return edge.to_executorch().buffer


def lower_portable(module, inputs, dynamic_shapes=None):
    """The bytes of a program whose kernels are all portable ones."""
    return lower_portable_program(torch.export.export(module, inputs, strict=False,
                                                      dynamic_shapes=dynamic_shapes))


def lower_portable_program(exported, _options=None):
    """The same for an exported program."""
    from executorch.exir import EdgeCompileConfig, to_edge

    # The check refuses operations on numbers that the portable runtime has.
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(exported, compile_config=config).to_executorch().buffer


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


def run_in_turn(module, runs, prefix):
    """The arrays of runs one after another."""
    arrays = {}
    for number, inputs in enumerate(runs):
        outputs = [output.copy() for output in run_eager(module, inputs)]
        arrays |= arrays_of(inputs, outputs, f"{prefix}{number}_")
    return arrays


def export(module, inputs, **options):
    """Export a module; return the program's bytes, and the arrays of eager PyTorch's run."""
    module.eval()
    outputs = run_eager(module, inputs)
    if not all(np.isfinite(a).all() for a in outputs):
        raise SystemExit("an output is not finite")
    return lower(module, inputs, **options), arrays_of(inputs, outputs)


def run_tool(what, programs, make, folder=None):
    """Read the command line of a tool that makes programs, and make them.

    Args:
        what: the tool's description.
        programs: their names.
        make: called with a name, always after the same seed; returns the program's bytes and the
            arrays to be saved beside it.
        folder: of this repository's programs, such as "tests/models"; the current one by default.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("name", nargs="*", help="programs to make (default: all)")
    parser.add_argument("--out", type=Path, default=Path(ROOT / folder if folder else "."),
                        help=f"folder for the files (default: {folder or 'the current one'})")
    parser.add_argument("--list", action="store_true", help="print the programs' names and stop")
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
        pte, arrays = make(name)
        (options.out / f"{name}.pte").write_bytes(pte)
        np.savez_compressed(options.out / f"{name}.npz", **arrays)
        print(f"{name}: {len(pte)} bytes")
