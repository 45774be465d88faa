"""Compiled shaders by name: SPIR-V and the interface read from it.

`shader_library().get("unary.texel.f32")` returns a `Shader`. The library is built from shaders/ by
shaders/build.py and installed with the package. `opcode("unary", "ABS")` is the number of an opcode
that shaders/elementwise/unary.comp names.
"""

from vkrt.shader.library import Binding, Shader, ShaderLibrary, Spec, opcode, shader_library

__all__ = ["Binding", "Shader", "ShaderLibrary", "Spec", "opcode", "shader_library"]
