#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 u8 i32
#extension GL_GOOGLE_include_directive : require
// Largest element of windows over images.
#include "max_pool2d.glsl"
