"""Room for scratch memory beside what is alive."""

from dataclasses import replace

from graph_maker import constant, graph_of_node, value
from plan_samples import Maker

from vkrt.lowering.lowering import lower
from vkrt.plan.scratch import alive, scratch_budgets
from vkrt.work.target import Target


def test_rooms():
    """The room of a node is the most bytes alive at any time less those alive at the node."""
    maker = Maker()
    source = maker.input(4096)
    middle, last = maker.temporary(1024), maker.temporary(512)
    maker.chain(source, middle, last)
    maker.output(last)
    assert scratch_budgets(maker.work, {0, 1}) == {0: 0, 1: 4096 - 512}
    assert scratch_budgets(maker.work, {1}) == {1: 4096 - 512}


def test_weights_take_no_room():
    maker = Maker()
    source = maker.input(4096)
    result = maker.temporary(1024)
    maker.step([result], [source, maker.operand(maker.storage("weight", 1 << 20))])
    maker.step([result], [result])
    maker.output(result)
    assert scratch_budgets(maker.work, {0, 1}) == {0: 0, 1: 4096}


def test_the_steps_of_a_node_together():
    """A node that takes several steps has the room that all of them leave."""
    maker = Maker()
    source = maker.input(2048)
    first, second = maker.temporary(512), maker.temporary(256)
    maker.chain(source, first, second, maker.temporary(2048))
    maker.output(second)
    maker.steps[0] = replace(maker.steps[0], node=1)
    assert scratch_budgets(maker.work, {1}) == {1: 0}


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
