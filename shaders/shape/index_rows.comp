#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Rows of a tensor.
#include "tensor.glsl"

IN(1, source)
#define SOURCE_TEXEL(t) LOAD(source, AT_LINEAR(t, source_X, source_Y, source_Z))
#include "index_rows.glsl"
