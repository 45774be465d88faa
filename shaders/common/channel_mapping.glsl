// The element of a vector, such as a norm's scale, that goes with a texel of a tensor:
// a texel of the vector for each texel of the tensor, or one element for all 4 (`spread`). They
// change every `inner` texels and begin again after `period` texels or elements.
int mapped_place(int i) { return REST_OF(QUOTIENT(i, inner), period); }
#define MAPPED(name, place) \
  (spread != 0 ? vec4(LOAD_FLAT(name, (place) >> 2)[(place) & 3]) : LOAD_FLAT(name, place))
