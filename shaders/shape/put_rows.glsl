// What is put to places of a tensor, one after the other in the order of the places.
//
// The including shader includes params.glsl first.
CASE(4, opcode)
// Whether what was there takes part, or the first that comes replaces it.
CASE(5, includes)

#if defined(DTYPE_i32)
T larger(T u, T v) { return max(u, v); }
T smaller(T u, T v) { return min(u, v); }
#else
// A NaN on either side stays.
T larger(T u, T v) { return isnan(u) || u > v ? u : v; }
T smaller(T u, T v) { return isnan(u) || u < v ? u : v; }
#endif

T put(T old, T new, bool is_first) {
  if (is_first && includes == 0) return new;
  switch (opcode) {
    case SUM: return old + new;
    case MEAN: return old + new;
    case PROD: return old * new;
    case MAX: return larger(old, new);
    case MIN: return smaller(old, new);
  }
  return new;
}

// What becomes of a sum of so many.
T ended(T sum, int count) {
  if (opcode != MEAN) return sum;
  int all = max(count + (includes != 0 ? 1 : 0), 1);
#if defined(DTYPE_i32)
  int q = sum / all;
  return sum - q * all < 0 ? q - 1 : q;
#else
  return sum / float(all);
#endif
}
