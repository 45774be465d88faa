"""The plan: where things lie, and that the prediction is what a counting allocator sees."""


import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import Maker, bytes_of, exact_requirements, random_work, simulate
from properties import examples

from vkrt.errors import InputError
from vkrt.plan.blocks import lifetimes
from vkrt.plan.plan import default_requirements, plan
from vkrt.work.command_list import CommandList


def chain_of_three(sizes=(1024, 2048, 1024, 512)):
    """input -> a -> b -> output."""
    make = Maker()
    values = [make.input(sizes[0]), *(make.temporary(n) for n in sizes[1:])]
    make.chain(*values)
    make.output(values[-1])
    return make, values


def test_lifetimes():
    make, (x, a, b, y) = chain_of_three()
    unused = make.temporary(64)
    assert lifetimes(make.work) == {x.storage.id: (0, 1), a.storage.id: (1, 2),
                                    b.storage.id: (2, 3), y.storage.id: (3, 4)}
    assert unused.storage.id not in plan(make.work).places


def test_arena_of_a_chain():
    make, (x, a, b, y) = chain_of_three()
    result = plan(make.work, exact_requirements)
    assert [block.kind for block in result.blocks] == ["activation"]
    assert result.activation_bytes == result.lower_bound == result.peak_bytes == 3072
    block = result.blocks[0]
    assert (block.nbytes, block.alignment, block.type_bits) == (3072, 16, 0xFF)
    assert result.places[b.storage.id][1].offset in (0, 2048)
    assert (result.weight_bytes, result.host_bytes, result.staging_bytes) == (0, 0, 0)


def test_an_input_nobody_reads_and_an_output_nobody_writes_have_places(make):
    x, y = make.input(64), make.temporary(32)
    make.output(y)
    assert set(plan(make.work).places) == {x.storage.id, y.storage.id}
    assert lifetimes(make.work) == {x.storage.id: (0, 0), y.storage.id: (1, 1)}


def test_inputs_and_outputs_in_host_memory():
    make, (x, a, b, y) = chain_of_three()
    result = plan(make.work, exact_requirements, unified=False)
    device, host = result.blocks
    assert (device.kind, host.kind) == ("activation", "host")
    assert {p.storage for p in host.places} == {x.storage.id, y.storage.id}
    assert (result.activation_bytes, result.host_bytes) == (3072, 1024)
    assert result.peak_bytes == 4096 and result.lower_bound == 3072


def test_host_call_storages_live_like_others(make):
    x, a, y = make.input(64), make.temporary(64), make.temporary(64)
    b = make.operand(make.storage("input", 64))
    make.step([a], [x])
    make.host_call([b], [a])
    make.step([y], [b])
    make.output(y)
    assert lifetimes(make.work)[a.storage.id] == (1, 2)
    assert lifetimes(make.work)[b.storage.id] == (2, 3)
    result = plan(make.work, unified=False)
    assert result.activation_bytes == 0 and result.host_bytes == 128


def test_storages_without_a_common_memory_type_lie_apart(make):
    x, a, b = make.input(64), make.temporary(64, image=True), make.temporary(64, image=True)
    make.chain(x, a, b)
    make.weight(64)
    make.weight(64, image=True)
    result = plan(make.work, lambda s: (s.nbytes, 16, 0b10 if s.is_image else 0b01))
    assert [(b.kind, b.nbytes, b.type_bits) for b in result.blocks] == [
        ("weight", 64, 1), ("weight", 64, 2), ("activation", 64, 1), ("activation", 128, 2)]
    assert result.activation_bytes == result.lower_bound == 192


def test_weight_blocks(make):
    ids = [make.weight(n).storage.id for n in (100, 200, 5000, 700, 300, 64)]
    result = plan(make.work, block_bytes=1024)
    blocks = [[(p.storage, p.offset, p.nbytes) for p in b.places] for b in result.blocks]
    # 100 is stored in 112 bytes and needs 128 of them.
    assert blocks == [[(ids[0], 0, 128), (ids[1], 128, 256)],
                      [(ids[2], 0, 5056)],
                      [(ids[3], 0, 704), (ids[4], 704, 320)],
                      [(ids[5], 0, 64)]]
    assert [b.nbytes for b in result.blocks] == [384, 5056, 1024, 64]
    assert (result.weight_bytes, result.largest_weight) == (6528, 5056)


def test_weights_packed_twice_have_one_place(make):
    make.weight(64)
    make.prepacks.append(make.prepacks[0])
    assert plan(make.work).weight_bytes == 64


def test_weight_images_and_buffers_share_no_page(make):
    for image in (False, True, True, False, True, False):
        make.weight(64, image=image)
    first, second = plan(make.work, granularity=1024, block_bytes=1152).blocks
    # Buffers lie first, so that images need not begin a page more than once.
    assert [(p.storage, p.offset) for p in first.places] == [(0, 0), (3, 64), (1, 1024), (2, 1088)]
    assert [(p.storage, p.offset) for p in second.places] == [(5, 0), (4, 1024)]
    assert (first.nbytes, second.nbytes) == (1152, 1088)


def test_alignment_inside_blocks_counts(make):
    make.weight(48)
    make.weight(48)
    block, = plan(make.work, lambda s: (s.nbytes, 256, 1)).blocks
    assert (block.nbytes, block.alignment) == (304, 256)


@pytest.mark.parametrize("order", ["lazy", "eager"])
def test_peak_by_hand(order):
    make, _ = chain_of_three()
    make.weight(4096, rows=100)
    make.weight(512)
    result = plan(make.work, order=order)
    weights, arena, staging = 409600 + 512, 3072, 262144
    assert (result.weight_bytes, result.activation_bytes) == (weights, arena)
    assert (result.largest_weight, result.staging_bytes) == (409600, staging)
    early = weights + arena if order == "eager" else 0
    at = dict(simulate(result))
    assert [at[name] for name in ("graph built", "prepack start", "after prepack",
                                  "before execute", "end of execute")] == [
        0, early, max(early, weights), weights + arena, weights + arena]
    assert result.peak_bytes == weights + staging + (arena if order == "eager" else 0)


def test_staging_hides_behind_the_arena():
    make, _ = chain_of_three((1 << 20, 1 << 21, 1 << 20, 1 << 10))
    make.weight(1 << 12, rows=1 << 12)
    result = plan(make.work)
    assert result.staging_bytes == result.activation_bytes == 3 << 20
    assert result.peak_bytes == result.weight_bytes + result.activation_bytes
    assert plan(make.work, chunk=1 << 20).staging_bytes == 1 << 20


@examples(40)
@given(st.integers(0, 10 ** 6), st.sampled_from(["lazy", "eager"]), st.booleans(),
       st.sampled_from([512, 4096, 8 << 20]), st.sampled_from([1024, 1 << 14]))
def test_simulation_is_exact(seed, order, unified, chunk, block_bytes):
    work = random_work(seed, steps=15, weights=seed % 12)
    result = plan(work, order=order, unified=unified, chunk=chunk, block_bytes=block_bytes)
    events = simulate(result)
    assert max(used for _, used in events) == result.peak_bytes
    # Every block is allocated exactly once, and before anything is packed into it.
    names = [name for name, _ in events]
    assert sum(" block " in name for name in names) == len(result.blocks)
    assert len(set(names)) == len(names)
    for number, batch in enumerate(result.batches):
        for item in batch.items:
            block = result.places[work.prepacks[item.prepack].target.storage.id][0]
            assert names.index(f"allocate weight block {block}") \
                < names.index(f"pack batch {number}")
    assert result.weight_bytes == sum(b.nbytes for b in result.blocks if b.kind == "weight")
    assert result.largest_weight <= result.weight_bytes


@examples(60)
@given(st.integers(0, 10 ** 6), st.booleans(), st.sampled_from([1, 256]))
def test_nobody_reads_another_tenants_bytes(seed, unified, granularity):
    """Runs the steps on bytes that remember whose they are."""
    work = random_work(seed)
    result = plan(work, exact_requirements, unified=unified, granularity=granularity)
    owner = {}

    def write(operand):
        owner.update(dict.fromkeys(bytes_of(result, operand), operand.storage.id))

    def read(operand):
        assert {owner.get(byte) for byte in bytes_of(result, operand)} == {operand.storage.id}

    for operand in work.inputs:
        write(operand)
    for step in work.steps:
        for operand in step.reads:
            read(operand)
        for operand in step.writes:
            write(operand)
        for operand in (*step.reads, *step.writes):
            read(operand)
    for operand in work.outputs:
        read(operand)


def test_empty_work():
    result = plan(CommandList())
    assert result.blocks == result.batches == () and result.peak_bytes == 0
    assert [used for _, used in simulate(result)] == [0] * 5


def test_reports():
    make, _ = chain_of_three()
    make.weight(4096, rows=3)
    result = plan(make.work, unified=False)
    assert result.summary()["peak_bytes"] == result.peak_bytes and result.blocks[0].kind == "weight"
    assert sum(item.nbytes for batch in result.batches for item in batch.items) == 3 * 4096
    assert all(name in result.describe() for name in ("weights", "staging", "host", "peak"))
    assert "host " not in plan(make.work).describe()


def test_default_requirements(make):
    assert default_requirements(make.storage("activation", 80)) == (128, 64, 0xFFFFFFFF)


@pytest.mark.parametrize("wrong", [{"order": "soon"}, {"chunk": 0}, {"granularity": 0},
                                   {"block_bytes": -1}])
def test_wrong_arguments(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        plan(CommandList(), **wrong)
