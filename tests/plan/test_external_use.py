"""How the plan of a run uses buffers of the host: in place, or copied."""

import pytest
from plan_samples import execution_of

from vkrt import DeviceBuffer, InputError
from vkrt.runtime.external import ExternalBinding

ALIGNMENT = 256


@pytest.fixture(scope="module")
def superres():
    return execution_of("superres_small")


def uses(execution, alignment, inputs, outputs):
    """How buffers are used, by the numbers of inputs and outputs: see `ExternalBinding.uses`."""
    return ExternalBinding(execution, alignment, inputs.items(), outputs.items()).uses


def places(execution, **changes):
    """How one buffer for the input and one for the output are used."""
    x = DeviceBuffer(1, **{"nbytes": 1 << 20, **changes})
    y = DeviceBuffer(2, **{"nbytes": 1 << 20, **changes})
    return tuple(map(len, uses(execution, ALIGNMENT, {0: x}, {0: y})))


def test_whole_storages_at_an_alignment_are_used_in_place(superres):
    assert places(superres) == (2, 0, 0)
    assert places(superres, offset=512) == (2, 0, 0)
    assert places(superres, offset=16) == (0, 1, 1)


def test_padding_of_the_hosts_is_not_taken_for_zeros():
    execution = execution_of("mlp")
    # 360 bytes end in the middle of a texel.
    _, copies_in, _ = uses(execution, ALIGNMENT, {0: DeviceBuffer(1, 368)}, {})
    assert [nbytes for *_, nbytes in copies_in] == [360]


def test_an_input_that_is_written_over_is_copied():
    # The query is scaled where it lies, unless the product has the factor.
    execution = execution_of("cases/attention", fuses=False)
    written = {number for numbers, _ in execution.accesses for number in numbers}
    inputs = {number: DeviceBuffer(number + 1, 1 << 20) for number in range(len(execution.inputs))}
    in_place, copies_in, _ = uses(execution, ALIGNMENT, inputs, {})
    assert any(storage in written for storage, *_ in copies_in)
    assert not any(storage in written for storage, *_ in in_place)


def test_a_buffer_has_room_for_its_tensor(superres):
    with pytest.raises(InputError, match=r"input 0: expected a DeviceBuffer of 4,752 bytes"):
        places(superres, nbytes=4751)


@pytest.mark.parametrize("first, shared", [(0, True), (4608, True), (4864, False)])
def test_an_input_that_shares_bytes_with_an_output_is_copied(superres, first, shared):
    """The input has 4,752 bytes at 0, the output begins at `first` of the same buffer."""
    assert superres.inputs[0].range.nbytes == 4752
    x, y = DeviceBuffer(1, 1 << 20), DeviceBuffer(1, 1 << 20, first)
    in_place, copies_in, _ = uses(superres, ALIGNMENT, {0: x}, {0: y})
    assert [copy[1:3] for copy in copies_in] == [(1, 0)] * shared
    assert [place[1:] for place in in_place] == [(1, first)] + [(1, 0)] * (not shared)
    # Copied at the end, an output still writes over what another one's kernels read in place.
    odd = DeviceBuffer(1, 1 << 20, first + 4)
    _, copies_in, copies_out = uses(superres, ALIGNMENT, {0: x}, {0: odd})
    assert [copy[1:3] for copy in copies_in] == [(1, 0)] * shared
    assert [copy[1:3] for copy in copies_out] == [(1, first + 4)]


@pytest.fixture(scope="module")
def many():
    """Commands with several outputs of floats."""
    return execution_of("elementwise")


def test_outputs_that_share_bytes_are_refused(many):
    sizes = [array.nbytes for array in many.outputs]
    assert len(sizes) > 1
    room = 1 << 20
    outputs = {0: DeviceBuffer(1, room), 1: DeviceBuffer(1, room, sizes[0] - 4)}
    with pytest.raises(InputError, match=rf"out 1: .*at {sizes[0] - 4:,} and the {sizes[0]:,} of "
                                         "out 0 at 0 of the same VkBuffer overlap"):
        uses(many, ALIGNMENT, {}, outputs)
    uses(many, ALIGNMENT, {}, {0: outputs[0], 1: DeviceBuffer(2, room, sizes[0] - 4)})
    uses(many, ALIGNMENT, {}, {0: outputs[0], 1: DeviceBuffer(1, room, sizes[0])})


def test_the_padding_of_an_output_leaves_the_next_one_alone():
    """Its kernel writes whole texels: in place it would write over the tensor behind it."""
    execution = execution_of("places")
    numbers = [number for number, result in enumerate(execution.outputs)
               if execution.storages[result.range.storage].role == "activation"
               and result.nbytes % 16]
    first, second = numbers[:2]
    nbytes = execution.outputs[first].nbytes
    assert nbytes < execution.outputs[first].range.nbytes
    in_place, _, _ = uses(execution, 4, {}, {first: DeviceBuffer(1, 1 << 20)})
    assert len(in_place) == 1
    _, _, copies_out = uses(execution, 4, {}, {first: DeviceBuffer(1, 1 << 20),
                                               second: DeviceBuffer(1, 1 << 20, nbytes)})
    assert [offset for _, _, offset, _ in copies_out] == [0]
