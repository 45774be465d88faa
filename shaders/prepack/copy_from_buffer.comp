#version 450
//! storages: texture3d
//! dtypes: f32 f16 i32 i8 u8 f32:f16 f16:f32 b16:f32
#extension GL_GOOGLE_include_directive : require
// Moves elements from a linear buffer (an input, a constant in staging) to an image.
#include "tensor.glsl"

OUT(0, result)
SSBO_IN(1, source, DTYPE)
#define SOURCE_TEXEL(t) PASTE(unpack_, DTYPE)(source[t])
#define SOURCE_ELEMENT(s) SOURCE_TEXEL((s) >> 2)[(s) & 3]
#define STORE_TEXEL(t, value) STORE(result, AT_LINEAR(t, X, Y, Z), value)
#include "copy.glsl"
