"""The shaders that were compiled with the package."""

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from vkrt.errors import UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

# The default of a PARAM's constant, as bits: UNSET of shaders/common/params.glsl
UNSET = 1 << 31


class Binding(NamedTuple):
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


class Spec(NamedTuple):
    """A specialization constant: its id, name, type ("int", "uint", "float", "bool"), and the
    32 bits of its default."""

    id: int
    name: str
    type: str
    default: int

    @property
    def may_be_pushed(self) -> bool:
        """Whether it is a PARAM (shaders/common/params.glsl): where nobody sets it, the shader
        reads the push constant."""
        return self.default == UNSET


class Shader(NamedTuple):
    """A compiled compute shader and its interface, without what it declares and never uses.

    Attributes:
        name: variant, e.g. "unary.texel.f32".
        read: reads the module's bytes.
        bindings, specs: in the order of binding numbers and of ids.
        push_bytes: size of the push constant block, 0 without one.
        local_size: workgroup size (x, y, z) before specialization.
        local_size_ids: specialization ids that set x, y and z; None where the size is fixed.
        capabilities: SPIR-V capabilities by name, for the device to be checked against.
    """

    name: str
    read: Callable[[], bytes]
    bindings: tuple[Binding, ...]
    specs: tuple[Spec, ...]
    push_bytes: int
    local_size: tuple[int, int, int]
    local_size_ids: tuple[int | None, int | None, int | None]
    capabilities: tuple[str, ...]

    @property
    def spirv(self) -> bytes:
        """The module's bytes, read anew: nothing needs them once there is a pipeline."""
        return self.read()

    @property
    def spec_names(self) -> dict[int, str]:
        return {spec.id: spec.name for spec in self.specs}


class ShaderLibrary:
    """Shaders by name. `in`, `len` and iteration go over the names.

    A load uses a dozen of some hundred shaders. Only these are read and become objects. The files
    are not mapped: the system maps the pages around a used page too, and most of both files would
    stay resident.

    Args:
        index: path of library.jsonl, as written by shaders/build.py.
        modules: path of library.bin, where each module is compressed.
    """

    def __init__(self, index: str | os.PathLike[str], modules: str | os.PathLike[str]) -> None:
        self._index, self._modules = _File(index), _File(modules)
        text = self._index.line()
        head = json.loads(text)
        # Offset and size of the line that describes a file of shaders
        self._lines: dict[str, list[int]] = head["files"]
        # Where the first of these lines begins
        self._start = len(text)
        # Numbers of the opcodes that shaders name: file without suffix -> name -> number
        self.opcodes: dict[str, dict[str, int]] = head["opcodes"]
        self._shaders: dict[str, Shader] = {}

    @property
    def stamp(self) -> tuple[int, int]:
        """Bytes of the modules, and when they were changed last, in ns."""
        return self._modules.stamp

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._described(name)["variants"]

    def __iter__(self) -> Iterator[str]:
        for file in self._lines:
            yield from self._described(file)["variants"]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, name: str) -> Shader:
        """The shader of that name (UnsupportedError: there is none; the nearest names)."""
        shader = self._shaders.get(name)
        if shader is None:
            shader = self._shaders[name] = self._make(name)
        return shader

    def _described(self, name: str) -> dict[str, Any]:
        """What the index says of the file of a shader: its variants and their interfaces."""
        try:
            offset, nbytes = self._lines[name.partition(".")[0]]
        except KeyError:
            return {"variants": {}, "interfaces": []}
        found: dict[str, Any] = json.loads(self._index.read(self._start + offset, nbytes))
        return found

    def _make(self, name: str) -> Shader:
        described = self._described(name)
        try:
            offset, nbytes, number = described["variants"][name]
        except KeyError:
            raise UnsupportedError(self._no_such(name)) from None
        interface = described["interfaces"][number]
        return Shader(
            name=name,
            read=functools.partial(_read_module, self._modules, offset, nbytes),
            bindings=tuple(Binding(**binding) for binding in interface["bindings"]),
            specs=tuple(Spec(**spec) for spec in interface["specs"]),
            push_bytes=interface["push_bytes"],
            local_size=tuple(interface["local_size"]),
            local_size_ids=tuple(interface["local_size_ids"]),
            capabilities=tuple(interface["capabilities"]),
        )

    def _no_such(self, name: str) -> str:
        import difflib

        # Other variants of the same kernel help most; if there are none, names that look alike.
        near = list(self._described(name)["variants"])
        near = near or difflib.get_close_matches(name, list(self), n=8, cutoff=0.5)
        there = f"; there are {', '.join(near[:12])}" if near else ""
        more = f" and {len(near) - 12} more" if len(near) > 12 else ""
        return f"no shader '{name}' in this build of vkrt{there}{more}"


class _File:
    """A file whose bytes are read on demand. It stays the file that was opened, even if another
    file is put in its place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def stamp(self) -> tuple[int, int]:
        """Its bytes, and when it was changed last, in ns."""
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def read(self, offset: int, nbytes: int) -> bytes:
        """Bytes from an offset on (OSError: there are fewer, or they cannot be read)."""
        found = os.pread(self._descriptor, nbytes, offset)
        if len(found) != nbytes:
            raise OSError(f"{len(found)} bytes at {offset}, expected {nbytes}: vkrt's shader "
                          "library is cut off")
        return found

    def line(self) -> bytes:
        """The first line, with its end."""
        with open(os.dup(self._descriptor), "rb") as file:
            return file.readline()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # At the interpreter's end `os` may be gone.
        if self._descriptor >= 0:
            close(self._descriptor)


def _read_module(modules: _File, offset: int, nbytes: int) -> bytes:
    import zlib

    try:
        return zlib.decompress(modules.read(offset, nbytes))
    except zlib.error as error:
        raise OSError(f"vkrt's shader library is damaged at {offset}: {error}") from error


@functools.cache
def shader_library() -> ShaderLibrary:
    """The shader library of this installation (UnsupportedError: the package was not built)."""
    try:
        # The files, which may have been unpacked for this, stay open.
        with _path_of("library.jsonl") as index, _path_of("library.bin") as modules:
            return ShaderLibrary(index, modules)
    except FileNotFoundError as error:
        raise UnsupportedError("vkrt has no compiled shaders: this copy was not built; run "
                               "tools/quickstart, or pip install . in its folder") from error


def opcode(file: str, name: str) -> int:
    """The number of an opcode (`case NAME:`) in a file of shaders/, named without its suffix."""
    return shader_library().opcodes[file][name]


@contextmanager
def _path_of(name: str) -> "Iterator[str | Path]":
    """A file of this package, for as long as the context lasts."""
    installed = os.path.join(os.path.dirname(__file__), name)
    if os.path.exists(installed):
        yield installed
        return
    # An editable install has it elsewhere, an archive has to be unpacked.
    from importlib.resources import as_file, files

    with as_file(files("vkrt.shader").joinpath(name)) as path:
        yield path
