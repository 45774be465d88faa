"""Which sizes of a dispatch are compiled into its pipeline; the others are push constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vkrt.executable.records import Kernel
from vkrt.shader import Shader, shader_library
from vkrt.work.command_list import CommandList
from vkrt.work.records import LOCAL_SIZE, Dispatch

# With "all", a shader with more different dispatches than these has its sizes pushed instead:
# compiling it so often takes longer than many runs gain.
MAX_SPECIALIZED = 96


@dataclass(frozen=True)
class Specialization:
    """Which parameters become specialization constants."""

    sizes: str = "few"  # "few" (those of `few`), "all" or "none"
    # Families of shaders -> names of parameters, from the driver's profile
    few: Mapping[str, Sequence[str]] = field(default_factory=dict)


class KernelChooser:
    """Gives every dispatch of a command list its kernel."""

    def __init__(self, work: CommandList, specialization: Specialization):
        self._specialization = specialization
        self._ids: dict[str, tuple[int, ...]] = {}
        self._pushed: set[str] = set()
        if specialization.sizes == "all":
            kinds = {(step.shader, step.params, step.local_size) for step in work.steps
                     if isinstance(step, Dispatch)}
            self._pushed = {name for name, count in Counter(kind[0] for kind in kinds).items()
                            if count > MAX_SPECIALIZED}

    def kernel(self, step: Dispatch) -> Kernel:
        ids = self._ids.get(step.shader)
        if ids is None:
            ids = self._ids[step.shader] = self._constant_ids(shader_library().get(step.shader))
        return Kernel(step.shader, constants_of(ids, step.params, step.constants))

    def _constant_ids(self, shader: Shader) -> tuple[int, ...]:
        """Ids of constants that are compiled in, always those that select code."""
        chosen = self._specialization
        names = chosen.few.get(_family(shader.name), ()) if chosen.sizes == "few" else ()
        everything = chosen.sizes == "all" and shader.name not in self._pushed
        return tuple(spec.id for spec in shader.specs
                     if everything or not spec.may_be_pushed or spec.name in names)


def kernels_of(work: CommandList, specialization: Specialization) -> tuple[Kernel, ...]:
    """The kernels of a command list, each once, in the order of their first dispatches."""
    chooser = KernelChooser(work, specialization)
    return tuple(dict.fromkeys(chooser.kernel(step) for step in work.steps
                               if isinstance(step, Dispatch)))


def pushed_kernel(shader: Shader, params: Sequence[int], constants: Sequence[int]) -> Kernel:
    """The kernel of a dispatch all of whose sizes are pushed; `params` are by id."""
    ids = tuple(spec.id for spec in shader.specs if not spec.may_be_pushed)
    return Kernel(shader.name, constants_of(ids, params, constants))


def constants_of(ids: Sequence[int], params: Sequence[int],
                 constants: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(id, value) of specialization constants: parameters, or properties of the dispatch."""
    return tuple((number, constants[number - LOCAL_SIZE] if number >= LOCAL_SIZE
                  else params[number]) for number in ids)


def _family(shader: str) -> str:
    """The name of a shader without its variant and its register tile, as in conv2d_8x8."""
    file = shader.partition(".")[0]
    family, _, tile = file.rpartition("_")
    return family if tile.replace("x", "", 1).isdecimal() else file
