#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none float16:f16
#extension GL_GOOGLE_include_directive : require
// Rows times a matrix of 4-bit weights, 32 rows times 32 columns of the result a workgroup. A weight is
// unpacked once a group, by the invocation that brings it.
#define TILE 32
#define WEIGHT_4
#include "matmul_shared.glsl"
