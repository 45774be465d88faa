#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8:f32 i8:f16
//! features: none shuffle
#extension GL_GOOGLE_include_directive : require
// Attention (attention.glsl) of any number of queries in one go: see attention_tile.glsl.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN_AS(1, query, DTYPE_OUT)
FLAT(2, keys)
FLAT(3, values)
#define POSITION_BINDING 4
// [item, head, query, key], of which the first three may be 1: their strides in texels. Texels in every
// storage, as a stage may have no more than 4 storage buffers.
TEXEL_IN(5, mask, f32)
#define LOAD_MASK(t) texelFetch(mask, t)
#include "attention.glsl"
PARAM(12, mask_item)
PARAM(13, mask_head)
PARAM(14, mask_query)

#ifdef FEATURE_SHUFFLE
#include "attention_lanes.glsl"
#else
#include "attention_group.glsl"
#endif
