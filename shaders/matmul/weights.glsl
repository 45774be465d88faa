// A matrix of the source's dtype, as it was packed or as another kernel has written it: a format of
// product.glsl.

WEIGHT(2, matrix)
// It may lie apart, see places.glsl.
#define HAS_PLACES
#define LOAD_MATRIX(at) LOAD_WEIGHT(matrix, at)
#define LINE_TEXELS texels
#define SCALED(v, z) (v)

#define FETCHED 1
#define AT_ONCE 1
#define FETCH(t)
#define GO_ON
#define WEIGHTS(j, k, part, e) LOAD_MATRIX(MATRIX_NEXT(LINE_AT(j), k))
