"""What `vkrt info` says of a compiled program; no driver is needed."""

from __future__ import annotations

from typing import Any

from vkrt.compiled.program import CompiledProgram
from vkrt.executable.program import CompiledMethod, CompiledTarget
from vkrt.graph.wording import counted
from vkrt.method.arguments import metadata_of
from vkrt.report.columns import byte_lines

# What is printed of a target, by its key in the figures
FIGURES = {"weights": "weight_bytes", "those shared": "shared_bytes", "mapped, no copy": "mapped",
           "pool": "pool_bytes", "state": "state_bytes", "activations": "activation_bytes",
           "staging": "staging_bytes", "predicted peak": "peak_bytes"}


def describe(path: str) -> dict[str, Any]:
    """The figures of a compiled program, in bytes and counts, for JSON."""
    program = CompiledProgram(path)
    try:
        methods: dict[str, Any] = {}
        for name in program.method_names:
            if name in program.constants:
                methods[name] = {"values": program.constants[name]}
                continue
            metadata = metadata_of(program.graph(name))
            methods[name] = {
                "inputs": [f"{i.name}: {i}" for i in metadata.inputs],
                "outputs": [f"{o.name}: {o}" for o in metadata.outputs],
                "shapes": 1 + len(program.targets_of(name)[0][1].others),
                "targets": {program.compiled.targets[number].device:
                            _figures(program.compiled.targets[number], method)
                            for number, method in program.targets_of(name)}}
        return {"file": path, "compiled_from": program.compiled.program,
                "vkrt": program.compiled.vkrt, "shaders": len(program.compiled.modules),
                "methods": methods}
    finally:
        program.close()


def _figures(target: CompiledTarget, method: CompiledMethod) -> dict[str, Any]:
    executable, figures = method.largest.executable, target.figures_of(method)
    return figures.summary() | {
        "shared_bytes": figures.weight_bytes - executable.figures.weight_bytes,
        "storage": executable.storage, "steps": executable.execution.steps,
        "mapped": sum(read.nbytes for read in executable.weights.mapped)}


def text(data: dict[str, Any]) -> str:
    lines = [f"compiled from {data['compiled_from']} by vkrt {data['vkrt']}, {data['shaders']} "
             "shaders"]
    for name, method in data["methods"].items():
        if "values" in method:
            lines.append(f"method {name} returns {', '.join(map(str, method['values']))}")
            continue
        lines += [f"method {name}", *(f"  input   {i}" for i in method["inputs"]),
                  *(f"  output  {o}" for o in method["outputs"])]
        for target, figures in method["targets"].items():
            largest = ", at the largest shape" if method["shapes"] > 1 else ""
            lines.append(f"  for {target}, storage {figures['storage']}: "
                         f"{counted(figures['steps'], 'step')}{largest}")
            lines += [f"    {line}" for line in byte_lines(
                [(name, figures[key]) for name, key in FIGURES.items()],
                {"weights", "activations", "predicted peak"})]
    return "\n".join(lines)
