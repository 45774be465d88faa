"""Room for scratch memory beside what is alive."""

from __future__ import annotations

from dataclasses import replace

from plan_samples import Maker

from vkrt.plan.scratch import scratch_budgets


def test_rooms():
    """The room of a node is the most bytes alive at any time less those alive at the node."""
    maker = Maker()
    source = maker.input(4096)
    middle, last = maker.temporary(1024), maker.temporary(512)
    maker.step([middle], [source])
    maker.step([last], [middle])
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
    maker.step([first], [source])
    maker.step([second], [first])
    maker.step([maker.temporary(2048)], [second])
    maker.output(second)
    maker.steps[0] = replace(maker.steps[0], node=1)
    assert scratch_budgets(maker.work, {1}) == {1: 0}
