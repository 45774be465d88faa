// A tensor that lies as a layer's result does and is added to it. The including shader has the
// parameter `has_addend`, whether there is one.
#if defined(STORAGE_TEXTURE3D)
IN(5, addend)
#define LOAD_ADDEND(at) LOAD(addend, at)
#else
// Texels, not a buffer: a stage may have no more than 4 of those.
TEXEL_IN(5, addend, DTYPE)
#define LOAD_ADDEND(at) texelFetch(addend, at)
#endif

vec4 with_addend(vec4 v, POSITION at) {
  // Where there is none, a texel of anything is bound.
  vec4 other = LOAD_ADDEND(has_addend != 0 ? at : POSITION(0));
  return has_addend != 0 ? v + other : v;
}
