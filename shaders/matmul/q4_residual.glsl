// A tensor that lies as a layer's result does and is added to it. The including shader has the
// parameter `has_residual`, whether there is one.
ALIASED IN_TEXELS(5, residual)

vec4 with_residual(vec4 v, POSITION at) {
  // Where there is none, a texel of anything is bound.
  vec4 other = LOAD_TEXELS(residual, has_residual != 0 ? at : POSITION(0));
  return has_residual != 0 ? v + other : v;
}
