"""Host kernel of layers that read tokens one by one and keep a matrix for each head."""

from __future__ import annotations

from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import fail


def delta_sizes(query, key, value, decay, beta, state):
    if len(query) != 4 or len(value) != 4:
        fail("query", f"expected four dimensions, as of the values {list(value)}, got "
                      f"{list(query)}")
    batch, heads, tokens, width = query
    wanted = {"key": (key, query), "value": (value[:3], query[:3]),
              "decay": (decay, (batch, heads, tokens)), "beta": (beta, (batch, heads, tokens)),
              "initial_state": (state, (batch, heads, width, value[3]))}
    for name, (got, expected) in wanted.items():
        if tuple(got) != tuple(expected):
            fail(name, f"expected sizes {list(expected)}, got {list(got)}")
    return (tuple(value), tuple(state))


@host_kernel("llama::gated_delta_rule.out", "query:T key:T value:T decay:T beta:T initial_state:T",
             sizes=delta_sizes, dtypes=ONE_FLOAT)
def gated_delta_rule(query, key, value, decay, beta, state):
    """For each token the matrix decays, and is corrected by the difference between the token's
    value and the matrix's product with its key. The result is the product with the query."""
    state = state.copy()
    result = np.empty_like(value)
    for token in range(query.shape[2]):
        now = key[:, :, token, :, None]
        state *= decay[:, :, token, None, None]
        known = (state * now).sum(-2)
        state += now * ((value[:, :, token] - known) * beta[:, :, token, None])[:, :, None]
        result[:, :, token] = (state * query[:, :, token, :, None]).sum(-2)
    return result, state
