#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Convolution, 1 pixel along x times 4 channels an invocation.
#define TILE_X 1
#define TILE_O 1
#include "conv2d.glsl"
