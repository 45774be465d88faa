#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8
#extension GL_GOOGLE_include_directive : require
// Depthwise convolution, 8 pixels along x an invocation.
#define TILE_X 8
#include "depthwise.glsl"
