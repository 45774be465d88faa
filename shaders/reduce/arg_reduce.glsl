// Index of the first maximum or minimum along one dimension; a NaN counts as the extreme.
//
// Lane by lane where the packed dimension is kept: the reduced one then has `count` places `inner`
// texels apart. Across the lanes where it is the reduced one: `count` texels in a row. A long
// dimension is split: `parts` parts of `chunk` places, joined by arg_join.comp.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
// The result's grid, with its parts one behind the other in Y.
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, minimum)
CASE(5, across)
PARAM(6, count)
PARAM(7, inner)
PARAM(8, length)
PARAM(9, source_X)
PARAM(10, source_Y)
PARAM(11, source_Z)
PARAM(12, chunk)
PARAM(13, parts)

#define TEXEL(t) LOAD(source, AT_LINEAR(t, source_X, source_Y, source_Z))
// Where texel i of the result starts in the source, of its lanes where they are reduced.
#define PLACES_BASE(i) ((i) + QUOTIENT(i, inner) * (count - 1) * inner)
#define TEXELS_BASE(i, lane) ((QUOTIENT(i, Z) * size + 4 * REST_OF(i, Z) + (lane)) * count)

#if defined(DTYPE_i32)
bool is_nan(int v) { return false; }
#else
bool is_nan(float v) { return isnan(v); }
#endif

bool better(T v, T best) {
  return !is_nan(best) && (is_nan(v) || (minimum != 0 ? v < best : v > best));
}
