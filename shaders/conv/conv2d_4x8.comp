#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Convolution, 4 pixels along x times 8 channels an invocation.
#define TILE_X 4
#define TILE_O 2
#include "conv2d.glsl"
