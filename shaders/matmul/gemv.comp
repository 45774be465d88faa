#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8 i8:f32 i8:f16 i32:i8
//! features: none shuffle:f32 shuffle:f16
//! without: texture3d:i32:i8
#extension GL_GOOGLE_include_directive : require
// One row times a matrix: see matmul.glsl.
#define GEMV
#include "matmul.glsl"
