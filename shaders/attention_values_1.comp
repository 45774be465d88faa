#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// See attention.glsl.
#define TILE 1
#include "attention_values.glsl"
