#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights, 4 rows times 4 columns of the result an invocation.
#define TILE_M 4
#define TILE_N 1
#define WEIGHT_4
#include "matmul.glsl"
