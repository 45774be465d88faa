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

// The number, at least 0 and at most `most`.
int position_at_most(int most) {
  int element = max(position_element, 0);
  int number = texelFetch(position, element >> 2)[element & 3];
  return clamp((position_element < 0 ? 0 : number) + position_base, 0, most);
}
