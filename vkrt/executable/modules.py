"""SPIR-V modules as files name them: made from the shader library, and compared with it."""

from __future__ import annotations

from collections.abc import Iterable

from vkrt.errors import UnsupportedError
from vkrt.executable.formats import DESCRIPTOR_TYPES
from vkrt.executable.program import Module, ModuleBinding
from vkrt.shader import shader_library


def module_of(name: str) -> Module:
    """The module of a shader whose code is in the shader library and in no other file.

    Raises:
        UnsupportedError: there is no such shader.
    """
    shader = shader_library().get(name)
    bindings = tuple([ModuleBinding(binding.binding, DESCRIPTOR_TYPES[binding.type])
                      for binding in shader.bindings])
    return Module(name, "", 0, 0, bindings, shader.push_bytes, tuple(shader.capabilities))


def check_interfaces(modules: Iterable[Module]) -> None:
    """Makes sure that the modules of a file agree with the shader library.

    Raises:
        UnsupportedError: a shader is missing or differs.
    """
    for module in modules:
        if module._replace(sha256="", offset=0, nbytes=0) != module_of(module.name):
            raise another_shader(module.name)


def another_shader(name: str) -> UnsupportedError:
    """The error for a shader that differs from the one in the shader library."""
    return UnsupportedError(f"its shader {name} is another one than this build of vkrt has")
