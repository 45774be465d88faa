"""Chains in slices of hidden channels, each with its bytes and its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vkrt.graph.graph import Graph
from vkrt.passes.division import DivisionCandidate, bytes_around
from vkrt.passes.liveness import Liveness, padded_bytes
from vkrt.passes.slices import Chain, chains, has_one_row
from vkrt.work.speed import Speed
from vkrt.work.target import Target

# How many slices are tried
COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def slice_candidates(graph: Graph, live: Liveness, target: Target, seconds: Sequence[float]
                  ) -> Iterator[DivisionCandidate]:
    """All chains, in as many slices as are worth trying; `seconds`: of each node as a whole."""
    for chain in chains(graph, keeps_weights=graph.is_dynamic):
        if has_one_row(chain.last):
            continue
        if chain.has_own_weights and graph.is_dynamic and target.storage == "texture3d":
            # Slices in images have weights of their own, but nodes of one row need whole weights.
            continue
        around = bytes_around(chain, graph, live)
        whole = sum(seconds[chain.start:chain.end])
        before = max(live.at_node[chain.start:chain.end])
        for count in COUNTS:
            divided = replace(chain, count=count)
            if divided.slices != count:
                continue
            nbytes = around + _slice_bytes(divided, live)
            if nbytes < before:
                yield DivisionCandidate(divided, nbytes,
                                        whole + _more_seconds(divided, target.speed))


def _slice_bytes(chain: Chain, live: Liveness) -> int:
    """The most bytes of a slice of the hidden tensors that are alive at once."""
    until: dict[object, int] = {}
    for index, node in chain.nodes.items():
        until |= {live.root[tensor]: index for tensor in node.tensors() if tensor in chain.dims}
    alive: dict[object, int] = {}
    most = 0
    for index, node in chain.nodes.items():
        out = node.outs[0]
        if out in chain.dims:
            alive[live.root[out]] = padded_bytes(out) * chain.width // chain.channels
        most = max(most, sum(alive.values()))
        alive = {root: nbytes for root, nbytes in alive.items() if until.get(root, -1) > index}
    return most


def _more_seconds(chain: Chain, speed: Speed) -> float:
    """How much longer a chain takes in slices: there are more dispatches, which read its inputs
    again, and read and write the result so far."""
    again = {tensor for node in chain.nodes.values() for tensor in node.tensors()
             if tensor not in chain.dims}
    moved = sum(map(padded_bytes, again)) + 2 * sum(map(padded_bytes, chain.results))
    return (chain.slices - 1) * (len(chain.nodes) * speed.dispatch + moved / speed.bytes)
