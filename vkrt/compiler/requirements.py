"""What vkrt needs of a device, for hosts that make the device themselves (`Device.adopt`).

vkrt can use the features that it enables on devices that it opens itself. What a program needs
follows from the shaders of its operators, and from how its weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from vkrt.compiler.description import Description
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.shader import shader_library
from vkrt.vk.info import Feature
from vkrt.vk.physical import features_by_capability, least_version, used_features
from vkrt.work.records import Dispatch
from vkrt.work.target import Target

# Values of the option `weights` that not every device supports -> the feature that they need
_BY_WEIGHTS = {"stream": "timeline", "map": "ext_memory_host"}
# Limits as large as devices have them. Limits decide which shader runs, but smaller limits do not
# lead to shaders with rarer features.
_TARGETS = tuple(Target(storage=storage, max_texels=1 << 27, max_buffer_range=(1 << 31) - 1,
                        max_image_extent=16384) for storage in ("texel", "buffer", "texture3d"))


@dataclass(frozen=True)
class Requirements:
    """What a device must have, and what vkrt also uses where it is enabled.

    Attributes:
        api_version: the least Vulkan version, of the instance and of the device, such as "1.1".
        queue: what the queue has to be able to do, as VkQueueFlagBits.
        features: the features without which loading or running fails, as `Feature`s.
        optional_features: the other features that vkrt would enable itself.
    """

    api_version: str
    queue: tuple[str, ...] = ("VK_QUEUE_COMPUTE_BIT",)
    features: tuple[Feature, ...] = ()
    optional_features: tuple[Feature, ...] = ()

    @property
    def extensions(self) -> tuple[str, ...]:
        """Names of the device extensions that `features` need. Some are needed only on devices of
        Vulkan versions before `Feature.core`."""
        return _extensions(self.features)

    @property
    def optional_extensions(self) -> tuple[str, ...]:
        return _extensions(self.optional_features)


def _extensions(features: tuple[Feature, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(feature.extension for feature in features if feature.extension))


def required_features(program: Any = None, *, weights: str = "auto") -> Requirements:
    """What vkrt needs of a device. No driver is needed to ask.

    `Device.adopt(.., features=[..])` takes the names that the features have as fields of Vulkan
    structs, and the names of extensions, which the host has enabled.

    Args:
        program: path of a program, its bytes, or an open `Description`, which the caller closes;
            None for what every program needs.
        weights: as for `vkrt.load`. Streaming needs timeline semaphores, also where a memory
            budget makes it necessary; mapping needs VK_EXT_external_memory_host.

    Raises:
        OSError, FormatError: the program cannot be read.
        UnsupportedError: it uses operators that vkrt does not have.
    """
    names = {_BY_WEIGHTS[weights]} if weights in _BY_WEIGHTS else set()
    if isinstance(program, Description):
        names |= _of_program(program)
    elif program is not None:
        with closing(Description(program)) as opened:
            names |= _of_program(opened)
    used = used_features()
    known = {feature.name for feature in used}
    # Subgroup operations cannot be enabled: a device has them or not.
    assert all(name in known or name.startswith("subgroup_") for name in names)
    return Requirements(least_version(),
                        features=tuple(f for f in used if f.name in names),
                        optional_features=tuple(f for f in used if f.name not in names))


def _of_program(program: Description) -> set[str]:
    features = features_by_capability()
    shaders = {shader for method in program.method_names
               for shader in _shaders_of(program.graph(method))}
    return {feature for name in shaders
            for capability in shader_library().get(name).capabilities
            if (feature := features[capability]) is not None}


def _shaders_of(graph: Graph) -> Iterator[str]:
    """Names of the shaders that a method's operators become, in all storages that can hold it."""
    failed = []
    for target in _TARGETS:
        try:
            work = lower(graph, target)
        except UnsupportedError as error:
            failed.append(error)
            continue
        yield from (step.shader for step in work.steps if isinstance(step, Dispatch))
        yield from (prepack.shader for prepack in work.prepacks)
    if len(failed) == len(_TARGETS):
        raise failed[-1]
