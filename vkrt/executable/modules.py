"""SPIR-V modules as files name them: what the shader library says of shaders, and a comparison."""

from __future__ import annotations

from collections.abc import Iterable

from vkrt.errors import UnsupportedError
from vkrt.executable.formats import DESCRIPTOR_TYPES
from vkrt.executable.program import Module, ModuleBinding
from vkrt.shader import shader_library


def module_of(name: str) -> Module:
    """The module of a shader, which is in the shader library and in no other file.

    Raises:
        UnsupportedError: there is no such shader.
    """
    shader = shader_library().get(name)
    bindings = tuple([ModuleBinding(binding.binding, DESCRIPTOR_TYPES[binding.type])
                      for binding in shader.bindings])
    return Module(name, "", 0, 0, bindings, shader.push_bytes, tuple(shader.capabilities))


def check_interfaces(modules: Iterable[Module]) -> None:
    """Makes sure that files say of shaders what the shader library says.

    Raises:
        UnsupportedError: a shader is not there, or is another one.
    """
    for module in modules:
        if module._replace(sha256="", offset=0, nbytes=0) != module_of(module.name):
            raise another_shader(module.name)


def another_shader(name: str) -> UnsupportedError:
    """The error for a shader that is not the one of the shader library."""
    return UnsupportedError(f"its shader {name} is another one than this build of vkrt has")
