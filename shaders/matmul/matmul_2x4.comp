#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix, 2 rows times 4 columns of the result an invocation.
#define TILE_M 2
#define TILE_N 1
#include "matmul.glsl"
