"""Which nodes have the records of another lowering, where passes make other nodes."""

from __future__ import annotations

import pytest

from vkrt.graph.graph import Node
from vkrt.lowering.reuse import Memo, NodeMemo, Reuse
from vkrt.work.tensor import Tensor


def tensor() -> Tensor:
    return Tensor((2, 4), "float32")


def memo_of(*nodes: Node) -> Memo:
    return Memo(nodes=tuple(NodeMemo(node, (), (), (), ()) for node in nodes))


X, Y, Z, W = (tensor() for _ in range(4))
NEGATED = Node("aten.neg.default", (X,), (Y,))
LIMITED = Node("aten.relu.default", (Y,), (Z,))
OTHER = Node("aten.exp.default", (X,), (W,))
# Both of the first two
FUSED = Node("aten.neg.default", (X,), (Z,), attributes={"epilogue": "relu"})


def found(memo: Memo, *nodes: Node) -> list[bool]:
    """Which of the nodes have records in a memo."""
    reuse = Reuse(memo, nodes)
    return [reuse.find(index, node) is not None for index, node in enumerate(nodes)]


def test_the_same_nodes_are_found():
    nodes = NEGATED, LIMITED, OTHER
    assert found(memo_of(*nodes), *nodes) == [True] * 3


def test_a_node_made_anew_that_does_the_same_is_found():
    again = Node(FUSED.op, FUSED.args, FUSED.outs, attributes={"epilogue": "relu"})
    assert again is not FUSED and found(memo_of(FUSED, OTHER), again, OTHER) == [True, True]


@pytest.mark.parametrize("attributes", [{}, {"epilogue": "tanh"}, {"residual": X}])
def test_other_attributes_are_another_node(attributes):
    other = Node(FUSED.op, FUSED.args, FUSED.outs, attributes=attributes)
    assert found(memo_of(FUSED), other) == [False]


def test_nested_nodes_are_compared_as_nodes():
    def layer(norm: Node) -> Node:
        return Node("et_vk.linear_q4gsw.default", (Y,), (Z,), attributes={"norm": norm})

    memo = memo_of(layer(NEGATED))
    assert found(memo, layer(Node(NEGATED.op, NEGATED.args, NEGATED.outs))) == [True]
    assert found(memo, layer(Node(NEGATED.op, (W,), NEGATED.outs))) == [False]


def test_what_a_node_touched_that_is_gone_has_changed():
    """It may have left a copy that what comes behind it reads."""
    assert found(memo_of(NEGATED, LIMITED, OTHER), OTHER, FUSED) == [False, False]


def test_what_comes_before_the_gone_node_is_found():
    assert found(memo_of(OTHER, NEGATED, LIMITED), OTHER, FUSED) == [True, False]


def test_nested_tensors_are_read_but_not_those_made_inside():
    node = Node("et_vk.linear_q4gsw.default", (Y,), (Z,), attributes={"norm": NEGATED})
    assert list(node.tensors()) == [X]
    several = Node("aten.linear.default", (X,), (Y, W),
                   attributes={"horizontal": (OTHER,), "other": Z})
    assert list(several.tensors()) == [X, Z, X]
