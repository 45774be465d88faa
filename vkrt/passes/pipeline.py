"""All passes in their order, and how a graph goes through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.passes.divide_activations import DIVIDE_ACTIVATIONS
from vkrt.passes.divide_weights import DIVIDE_WEIGHTS
from vkrt.passes.fuse_attention import FUSE_ATTENTION
from vkrt.passes.fuse_epilogue import FUSE_EPILOGUE, FUSE_RESIDUAL
from vkrt.passes.fuse_padding import FUSE_PADDING
from vkrt.passes.fuse_requantization import FUSE_REQUANTIZATION
from vkrt.passes.fuse_rotary import FUSE_ROTARY
from vkrt.passes.fuse_rows import FUSE_ROWS
from vkrt.passes.fuse_silu import FUSE_SILU
from vkrt.passes.fuse_softmax import FUSE_SOFTMAX
from vkrt.passes.fuse_strided_views import FUSE_FACTOR, FUSE_PERMUTATION, MARK_STRIDED_VIEWS
from vkrt.passes.rewrite import Pass, checked, order_faults
from vkrt.passes.share_qparams import SHARE_QPARAMS
from vkrt.passes.simplify import SIMPLIFY
from vkrt.passes.sums_of_halves import FUSE_SQUARES, WIDEN_SUMS
from vkrt.work.target import Target

# `Target.prefer` is only read by the others: graphs for other preferences share these.
FOR_ALL_PREFERENCES = (SIMPLIFY, FUSE_SQUARES, WIDEN_SUMS, FUSE_SOFTMAX, FUSE_EPILOGUE, FUSE_SILU,
                       FUSE_REQUANTIZATION, DIVIDE_WEIGHTS, FUSE_PADDING, FUSE_RESIDUAL,
                       FUSE_ROTARY, SHARE_QPARAMS, FUSE_FACTOR)
# Here it decides about blocks of attention's scores ..
BY_BLOCKS = (FUSE_ATTENTION,)
# .. and here about nodes in parts
BY_PARTS = (DIVIDE_ACTIVATIONS, FUSE_PERMUTATION, MARK_STRIDED_VIEWS, FUSE_ROWS)
PASSES = FOR_ALL_PREFERENCES + BY_BLOCKS + BY_PARTS


def run_passes(graph: Graph, target: Target,
               on_pass: Callable[[Pass, Graph], None] | None = None,
               passes: Sequence[Pass] | None = None) -> Graph:
    """The graph after the passes that the target does not skip; the same object where nothing
    changes.

    Args:
        on_pass: called with each pass that changed the graph, and with the graph that it made.
        passes: only these, in their order; by default all.

    Raises:
        InputError: the target skips a name that no pass has.
        InternalError: a pass made a wrong graph of a right one, and passes are strict
            (`vkrt.passes.rewrite`).
    """
    names = [each.name for each in PASSES]
    if unknown := sorted(target.skipped.difference(names)):
        raise InputError(f"there is no pass {unknown[0]!r}; the passes are {', '.join(names)}")
    # A damaged program may read tensors that nothing makes: lowering reports them.
    if next(order_faults(graph), None) is not None:
        return graph
    found = {node.op for node in graph.nodes}
    for each in PASSES if passes is None else passes:
        is_skipped = not target.fuses or each.name in target.skipped
        if ((is_skipped and not each.is_required)
                or (each.roots and each.roots.isdisjoint(found))):
            continue
        new = each.run(graph, target)
        if new is not graph:
            new = checked(new, graph, each.name)
        if new is not graph:
            graph = new
            found = {node.op for node in graph.nodes}
            if on_pass is not None:
                on_pass(each, graph)
    return graph
