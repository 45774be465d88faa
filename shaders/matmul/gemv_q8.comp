#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none shuffle:texel shuffle:buffer
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 8-bit weights: see matmul.glsl.
#define GEMV
#define WEIGHT_8
#include "matmul.glsl"
