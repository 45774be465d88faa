#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 4-bit weights, a team (team.glsl) for every 4 columns: see q4_row.glsl.
#define MOST 1
#define TILE_N 1
#define TEAMS
#include "q4_row.glsl"
