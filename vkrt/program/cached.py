"""The cached plan of a program: what a load makes of it, and how one is kept for later loads."""

from __future__ import annotations

from vkrt.compiler.description import Description
from vkrt.compiler.plan_cache import (
    CachedPlan,
    PlanFiles,
    graph_of,
    method_plan,
    shape_plan,
    why_unkept,
)
from vkrt.compiler.shape_files import REFUSED, ShapeFiles
from vkrt.errors import VkrtError
from vkrt.executable.program import ConstantMethod, MethodPlan
from vkrt.method.arguments import metadata_of
from vkrt.method.executables import Executables, Ready, Whole
from vkrt.method.method import Method
from vkrt.plan.options import LoadOptions
from vkrt.runtime.mapping import mapper_of
from vkrt.runtime.open_device import OpenDevice
from vkrt.work.tensor import Tensor


def ready_of(cached: MethodPlan, files: PlanFiles, description: Description, device: OpenDevice,
             options: LoadOptions) -> Ready:
    """A method by its cached plan; the caller closes it.

    Args:
        device: as the plan was read for it: kernels that are refused later do not change where its
            weights lie.

    Raises:
        UnsupportedError: the plan does not hold any more, because the device does not read a weight
            in its file.
    """
    plan = shape_plan(cached)

    def whole() -> Whole:
        return Whole(description.graph(cached.method),
                     description.compile(cached.method, device, options))

    is_dynamic = any(isinstance(value, Tensor) and value.dynamic_dims for value in cached.inputs)
    mapper = mapper_of(cached.executable, device.device, description.sources,
                       options.weights == "map")
    return Ready(Executables(
        plan.graph, plan, whole=whole,
        files=ShapeFiles(files, cached.method) if is_dynamic else None), mapper)


def keep_plan(method: Method, first: str | None, description: Description,
              files: PlanFiles) -> None:
    """Keeps the plan of a method that was compiled, for later loads; its report says why not.

    Args:
        first: the name of the method that a load gets ready at once; None for none.
        description: of the program.
    """
    name = method.metadata.name
    if files.is_off:
        return
    why = ("only that of 'forward', or of the only method, is" if name != first else
           files.why or why_unkept(method.graph) or method.why_not_repeatable
           or _write(method, description, files))
    if why:
        method.report.note(f"no plan of method '{name}' is kept for later loads: {why}")


def _write(method: Method, description: Description, files: PlanFiles) -> str:
    """Writes the plan to its file; returns why it could not, or ""."""
    graph = method.graph
    plan = method_plan(description.method_names, method.largest, graph)
    if vars(metadata_of(graph_of(plan))) != vars(method.metadata):
        return "its outputs have other sizes at the largest inputs than at some others"
    try:
        constants = description.constants
    except VkrtError as error:
        return f"a method that gives numbers cannot be read ({error})"
    device = OpenDevice(method.device)
    if method.work.target.refused != frozenset(device.refused):
        return REFUSED
    why = files.write(device, CachedPlan(
        plan, tuple(map(ConstantMethod, constants, constants.values()))))
    if not why and graph.is_dynamic:
        method.keep_shapes(ShapeFiles(files, graph.name))
    return why
