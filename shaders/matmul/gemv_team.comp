#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! features: none subgroups
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// One row times a matrix, a team for every 4 columns: see gemv_team.glsl.
#include "gemv_team.glsl"
