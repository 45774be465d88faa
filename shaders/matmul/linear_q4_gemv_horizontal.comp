#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none shuffle
#extension GL_GOOGLE_include_directive : require
// One row times two or three matrices of 4-bit weights, 12 columns of each an invocation: see
// q4_row.glsl.
#define MOST 3
#define TILE_N 3
#include "q4_row.glsl"
