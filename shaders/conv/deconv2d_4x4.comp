#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8
#extension GL_GOOGLE_include_directive : require
// Transposed convolution, 4 pixels along x times 4 channels an invocation.
#define TILE_X 4
#define TILE_O 1
#include "deconv2d.glsl"
