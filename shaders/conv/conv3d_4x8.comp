#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Convolution over three spatial dimensions, 4 pixels along x times 8 channels an invocation.
#define TILE_X 4
#define TILE_O 2
#include "conv3d.glsl"
