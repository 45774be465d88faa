#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix, 4 rows times 8 columns of the result an invocation.
#define TILE_M 4
#define TILE_N 2
#include "matmul.glsl"
