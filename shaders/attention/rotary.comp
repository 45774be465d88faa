#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding of one tensor: see rotary.glsl.
#define TABLES 2
#define TABLE(binding, name) FLAT(binding, name)
#define LOAD_TABLE(name, i) LOAD_FLAT(name, i)
#define POSITION_BINDING 4
#include "rotary.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)

#define SOURCE source
#define TURN turned_source
#define PARTNERS partners
#define WIDTH X
#define HEIGHT Y
#define HEADS heads
#define LOAD_SOURCE LOAD
#include "rotary_turn.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  STORE(result, AT_LINEAR(i, X, Y, Z), turned_source(i));
}
