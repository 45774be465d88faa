// Rotary position embedding: pairs of elements of a row, turned by the angles of the row's position.
//
//   PAIRS    elements 2j and 2j + 1, by column j of the tables of cosines and sines
//   COMPLEX  the same with one table of (cosine, sine), (cosine, sine), ..
//   HALVES   elements j and j + turned / 2 of the first `turned` ones, by columns j and
//            j + turned / 2; the others stay as they are
//
// Rows are [.., position, head]. The including shader defines POSITION_BINDING, TABLES (the binding of
// the first of both tables), TABLE and LOAD_TABLE (how they are declared and read), and includes
// rotary_turn.glsl for each tensor that it turns. Its own parameters begin at FURTHER.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

TABLE(TABLES, cosines)
TABLE(TABLES + 1, sines)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
PARAM(5, heads)
PARAM(6, positions)
PARAM(7, turned)
// Of the tables: rows, and texels of a row.
PARAM(8, table_rows)
PARAM(9, table_Z)
// The row of the tables for the first position.
#define POSITION_PARAM 10
#include "position.glsl"
#define FURTHER 12

// (cosine, sine, cosine, sine) of the two pairs of a texel.
vec4 turned_pairs(vec4 v, vec4 angles) {
  vec2 even = v.xz * angles.xz - v.yw * angles.yw;
  vec2 odd = v.xz * angles.yw + v.yw * angles.xz;
  return vec4(even.x, odd.x, even.y, odd.y);
}
