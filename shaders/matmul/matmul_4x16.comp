#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: shuffle
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix, 4 rows times 16 columns of the result an invocation.
#define TILE_M 4
#define TILE_N 4
#include "matmul.glsl"
