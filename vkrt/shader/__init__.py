"""Compiled shaders by name: SPIR-V and the interface read from it.

`catalog().get("unary.texel.f32")` returns a `Shader`. The catalog is built from shaders/ by
shaders/build.py and installed with the package. `kind("unary", "ABS")` is the number of a kind that
shaders/elementwise/unary.comp names.
"""

from vkrt.shader.catalog import Binding, Catalog, Shader, Spec, catalog, kind

__all__ = ["Binding", "Catalog", "Shader", "Spec", "catalog", "kind"]
