"""The shaders that were compiled with the package."""

import functools
import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from vkrt.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Binding:
    """One descriptor of a shader, always in descriptor set 0.

    Attributes:
        binding: its number.
        type: "storage_buffer", "uniform_texel_buffer", "storage_texel_buffer",
            "combined_image_sampler", "storage_image", "uniform_buffer", "sampled_image" or
            "sampler".
        component: what a texel consists of, "float", "int" or "uint"; "struct" for buffers.
        readable, writable: what the shader's declaration lets it do.
        name: as in the GLSL source.
    """

    binding: int
    type: str
    component: str
    readable: bool
    writable: bool
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """A specialization constant: its id, name, type ("int", "uint", "float", "bool"), and the
    32 bits of its default."""

    id: int
    name: str
    type: str
    default: int


@dataclass(frozen=True, slots=True)
class Shader:
    """A compiled compute shader and what a host has to know to run it.

    What a shader declares and never uses is not in its interface: the optimizer has removed it.

    Attributes:
        name: variant, e.g. "unary.texel.f32".
        spirv: the module's bytes, a view of the catalog's mapping.
        bindings: by binding number.
        specs: specialization constants by id.
        push_bytes: size of the push constant block, 0 without one.
        local_size: workgroup size (x, y, z) before specialization.
        local_size_ids: specialization ids that set x, y and z; None where the size is fixed.
        capabilities: SPIR-V capabilities by name, for the device to be checked against.
    """

    name: str
    spirv: memoryview
    bindings: tuple[Binding, ...]
    specs: tuple[Spec, ...]
    push_bytes: int
    local_size: tuple[int, int, int]
    local_size_ids: tuple[int | None, int | None, int | None]
    capabilities: tuple[str, ...]

    @property
    def spec_ids(self) -> tuple[int, ...]:
        """Ids of the specialization constants, sorted."""
        return tuple(spec.id for spec in self.specs)

    @property
    def spec_names(self) -> dict[int, str]:
        """Names of the specialization constants by id."""
        return {spec.id: spec.name for spec in self.specs}


class Catalog:
    """Shaders by name. `in`, `len` and iteration go over the names.

    Args:
        index: the content of catalog.json as written by shaders/build.py.
        modules: the bytes of catalog.bin.
    """

    def __init__(self, index: dict[str, Any], modules: memoryview) -> None:
        self._variants: dict[str, list[int]] = index["variants"]
        self._interfaces: list[dict[str, Any]] = index["interfaces"]
        # Numbers of what shaders tell apart by name: file without suffix -> name -> number
        self.kinds: dict[str, dict[str, int]] = index["kinds"]
        self._modules = modules
        self._shaders: dict[str, Shader] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._variants

    def __iter__(self) -> Iterator[str]:
        return iter(self._variants)

    def __len__(self) -> int:
        return len(self._variants)

    def get(self, name: str) -> Shader:
        """The shader of that name.

        Raises:
            UnsupportedError: there is none; the message lists the nearest names.
        """
        shader = self._shaders.get(name)
        if shader is None:
            shader = self._shaders[name] = self._make(name)
        return shader

    def _make(self, name: str) -> Shader:
        try:
            offset, nbytes, number = self._variants[name]
        except KeyError:
            raise UnsupportedError(self._no_such(name)) from None
        interface = self._interfaces[number]
        return Shader(
            name=name,
            spirv=self._modules[offset:offset + nbytes],
            bindings=tuple(Binding(**binding) for binding in interface["bindings"]),
            specs=tuple(Spec(**spec) for spec in interface["specs"]),
            push_bytes=interface["push_bytes"],
            local_size=tuple(interface["local_size"]),
            local_size_ids=tuple(interface["local_size_ids"]),
            capabilities=tuple(interface["capabilities"]),
        )

    def _no_such(self, name: str) -> str:
        import difflib

        stem = name.split(".")[0]
        # Other variants of the same kernel say most; without any, names that look alike.
        near = [known for known in self._variants if known.split(".")[0] == stem]
        near = near or difflib.get_close_matches(name, self._variants, n=8, cutoff=0.5)
        there = f"; there are {', '.join(near[:12])}" if near else ""
        more = f" and {len(near) - 12} more" if len(near) > 12 else ""
        return f"no shader '{name}' in this build of vkrt{there}{more}"


@functools.cache
def catalog() -> Catalog:
    """The catalog of this installation, loaded at the first call.

    Raises:
        UnsupportedError: the package was not built (for instance imported from a source folder).
    """
    try:
        with _opened("catalog.json") as file:
            index = json.load(file)
        with _opened("catalog.bin") as file:
            # Mapped, so that only the modules in use become memory. The mapping outlives the file,
            # which may have been unpacked. An empty file cannot be mapped.
            empty = not file.seek(0, 2)
            modules = memoryview(b"" if empty else mmap.mmap(file.fileno(), 0,
                                                             access=mmap.ACCESS_READ))
    except FileNotFoundError as error:
        raise UnsupportedError("vkrt has no compiled shaders: this copy was not built; run "
                               "tools/quickstart, or pip install . in its folder") from error
    return Catalog(index, modules)


def kind(file: str, name: str) -> int:
    """The number of what a shader, or a file that it includes, tells apart by name.

    Args:
        file: of shaders/ or shaders/common/, without its suffix.
        name: as in `case NAME:` there.
    """
    return catalog().kinds[file][name]


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """A file of this room, opened."""
    beside = os.path.join(os.path.dirname(__file__), name)
    if os.path.exists(beside):
        with open(beside, "rb") as file:
            yield file
        return
    # An editable install has it elsewhere, an archive has to be unpacked.
    from importlib.resources import as_file, files

    with as_file(files("vkrt.shader").joinpath(name)) as path, open(path, "rb") as file:
        yield file
