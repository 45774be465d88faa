#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32:i8
//! features: none float16:f16 dot:i32:i8
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// Convolution, 64 pixels times 64 channels of the result a workgroup.
#define TILE 64
#include "conv2d_shared.glsl"
