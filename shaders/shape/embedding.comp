#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Rows of a table that is a linear buffer in every storage: it may have more rows than an image.
#include "tensor.glsl"

FLAT(1, source)
#define SOURCE_TEXEL(t) LOAD_FLAT(source, t)
#include "index_rows.glsl"
