// What an element beyond the last key is, so that it is neither the largest nor counts.
vec4 seen(vec4 v, int t, int last, float other) {
  return mix(vec4(other), v, lessThanEqual(4 * t + ivec4(0, 1, 2, 3), ivec4(last)));
}
