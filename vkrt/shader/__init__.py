"""Compiled shaders by name: SPIR-V and the interface read from it.

`catalog().get("unary.texel.f32")` returns a `Shader`. The catalog is built from shaders/*.comp by
shaders/build.py and installed with the package.
"""

from vkrt.shader.catalog import Binding, Catalog, Shader, Spec, catalog

__all__ = ["Binding", "Catalog", "Shader", "Spec", "catalog"]
