#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Convolution over three spatial dimensions, 1 pixel along x times 4 channels an invocation.
#define TILE_X 1
#define TILE_O 1
#include "conv3d.glsl"
