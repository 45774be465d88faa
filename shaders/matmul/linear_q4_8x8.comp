#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights, 8 rows times 8 columns of the result an invocation.
#define TILE_M 8
#define TILE_N 2
#define WEIGHT_4
#include "matmul.glsl"
