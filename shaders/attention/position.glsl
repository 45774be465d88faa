// A number that a kernel reads from an input of the method when it runs: where rows go in a cache,
// how far attention looks. The host checks it before every run; it is limited here all the same, so
// that nothing outside of a cache is read or written.
//
// The including shader defines POSITION_BINDING, and POSITION_PARAM, the id of the first of two
// parameters.

// Texels in every storage, as a stage may have no more than 4 storage buffers.
TEXEL_IN(POSITION_BINDING, position, i32)
// Which element of the input it is, -1 for none; what is added to it.
PARAM(POSITION_PARAM, position_element)
PARAM(POSITION_PARAM + 1, position_base)

// A number that is read so from any input, at least 0 and at most `most`.
#define NUMBER_AT_MOST(input_, element, base, most) \
  clamp(((element) < 0 ? 0 : texelFetch(input_, max(element, 0) >> 2)[max(element, 0) & 3]) \
        + (base), 0, most)

int position_at_most(int most) {
  return NUMBER_AT_MOST(position, position_element, position_base, most);
}
