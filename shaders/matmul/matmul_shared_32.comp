#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! features: none float16:f16 dot:i8 dot:i8:f32 dot:i8:f16 dot:i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix, 32 rows times 32 columns of the result a workgroup.
#define TILE 32
#include "matmul_shared.glsl"
