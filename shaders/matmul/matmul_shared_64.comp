#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32:i8
//! features: none float16:f16 dot:i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix, 64 rows times 64 columns of the result a workgroup.
#define TILE 64
#include "matmul_shared.glsl"
