#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// The gated layer of one row, with 4-bit weights, a team (team.glsl) for every 4 columns:
// see q4_row.glsl.
#define LAYERS 2
#define GATED
#define TILE_N 1
#define TEAMS
#include "q4_row.glsl"
