#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8
#extension GL_GOOGLE_include_directive : require
// Transposed convolution, 8 pixels along x times 8 channels an invocation.
#define TILE_X 8
#define TILE_O 2
#include "deconv2d.glsl"
