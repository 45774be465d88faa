"""Room for scratch memory beside what is alive."""

from dataclasses import replace

from graph_maker import constant, graph_of_node, value

from vkrt.lowering.lowering import lower
from vkrt.plan.scratch import alive, scratch_budgets
from vkrt.work.target import Target


def test_rooms(make):
    """The room of a node is the most bytes alive at any time less those alive at the node."""
    source = make.input(4096)
    middle, last = make.temporary(1024), make.temporary(512)
    make.chain(source, middle, last)
    make.output(last)
    assert scratch_budgets(make.work, {0, 1}) == {0: 0, 1: 4096 - 512}
    assert scratch_budgets(make.work, {1}) == {1: 4096 - 512}


def test_weights_take_no_room(make):
    source = make.input(4096)
    result = make.temporary(1024)
    make.step([result], [source, make.operand(make.storage("weight", 1 << 20))])
    make.step([result], [result])
    make.output(result)
    assert scratch_budgets(make.work, {0, 1}) == {0: 0, 1: 4096}


def test_the_steps_of_a_node_together(make):
    """A node that takes several steps has the room that all of them leave."""
    source = make.input(2048)
    first, second = make.temporary(512), make.temporary(256)
    make.chain(source, first, second, make.temporary(2048))
    make.output(second)
    make.steps[0] = replace(make.steps[0], node=1)
    assert scratch_budgets(make.work, {1}) == {1: 0}


def test_speed_may_take_as_much_again():
    """Of a layer whose scratch does not fit beside what is alive."""
    graph = graph_of_node("aten.convolution.default", value(1, 32, 64, 64), constant(32, 32, 3, 3),
                          None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    works = {prefer: lower(graph, Target(scratch="spare", prefer=prefer))
             for prefer in ("balanced", "speed")}
    balanced, speed = (max(alive(works[prefer])) for prefer in ("balanced", "speed"))
    assert balanced < speed <= 2 * balanced
    kernels = {step.shader.partition(".")[0] for step in works["speed"].steps}
    assert "winograd_input" in kernels
