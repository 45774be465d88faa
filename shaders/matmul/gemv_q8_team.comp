#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 8-bit weights, a team for every 4 columns: see gemv_team.glsl.
#define WEIGHT_8
#include "gemv_team.glsl"
