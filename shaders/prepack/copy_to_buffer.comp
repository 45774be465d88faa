#version 450
//! storages: texture3d
//! dtypes: f32 f16 i32 i8 u8 f32:f16 f16:f32
#extension GL_GOOGLE_include_directive : require
// Moves elements from an image to a linear buffer (an output, an argument of a host kernel).
#include "tensor.glsl"

SSBO_OUT(0, result, DTYPE_OUT)
IN(1, source)
#define SOURCE_AT(t) AT_LINEAR(t, source_X, source_Y, source_Z)
#define SOURCE_TEXEL(t) LOAD(source, SOURCE_AT(t))
#define SOURCE_ELEMENT(s) SOURCE_TEXEL((s) >> 2)[(s) & 3]
#define STORE_TEXEL(t, value) result[t] = PASTE(pack_, DTYPE_OUT)(value)
#include "copy.glsl"
