#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// One row times two or three matrices of 4-bit weights, a team (team.glsl) for every 4 columns of
// each: see q4_row.glsl.
#define MOST 3
#define TILE_N 1
#define TEAMS
#include "q4_row.glsl"
