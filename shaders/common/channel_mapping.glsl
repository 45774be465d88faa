// The element of a vector, such as a norm's scale, that goes with a texel of a tensor:
// a texel of the vector for each texel of the tensor, or one element for all 4 (`spread`). They
// change every `inner` texels and begin again after `period` texels or elements.
#define MAPPED(name, i) \
  (spread != 0 ? vec4(LOAD_FLAT(name, (i) / inner % period >> 2)[(i) / inner % period & 3]) \
               : LOAD_FLAT(name, (i) / inner % period))
