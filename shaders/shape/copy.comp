#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 i8 u8 f32:f16 f16:f32 b16:f32
#extension GL_GOOGLE_include_directive : require
// Moves elements between two tensors of the same storage.
#include "tensor.glsl"

OUT(0, result)
IN(1, source)
#define SOURCE_AT(t) AT_LINEAR(t, source_X, source_Y, source_Z)
#define SOURCE_TEXEL(t) LOAD(source, SOURCE_AT(t))
#define SOURCE_ELEMENT(s) SOURCE_TEXEL((s) >> 2)[(s) & 3]
#define STORE_TEXEL(t, value) STORE(result, AT_LINEAR(t, X, Y, Z), value)
#include "copy.glsl"
