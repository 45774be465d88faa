// The element of a vector, such as a norm's scale, that goes with a texel of a tensor:
// a texel of the vector for each texel of the tensor, or one element for all 4 of `inner` texels
// (`spread`). They begin again after `period` texels or elements.
int mapped_place(int i) { return REST_OF(spread != 0 ? QUOTIENT(i, inner) : i, period); }
#define MAPPED(name, place) \
  spread_out(LOAD_FLAT(name, spread != 0 ? (place) >> 2 : (place)), (place) & 3)
vec4 spread_out(vec4 v, int lane) { return spread != 0 ? vec4(v[lane]) : v; }

// v times the weight plus the bias. Either may be missing: a single texel of anything is bound then.
#define SCALED(v, place) \
  plus(times(v, MAPPED(weight, has_weight != 0 ? (place) : 0)), \
       MAPPED(bias, has_bias != 0 ? (place) : 0))
vec4 times(vec4 v, vec4 weight) { return has_weight != 0 ? v * weight : v; }
vec4 plus(vec4 v, vec4 bias) { return has_bias != 0 ? v + bias : v; }
