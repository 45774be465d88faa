"""The model of GPUs' times (tools/measure/compilers), without a driver: what it counts."""

from __future__ import annotations

import pytest
from compilers.assembly import READERS, Code
from compilers.cost import HARDWARE, costs_of
from compilers.drivers import Capture
from compilers.invocation import counts
from compilers.statistics import digest_of, pruned_code
from compilers.table import text_of

# A loop of a multiplication and a load, in each maker's words, behind one instruction
ASSEMBLY = {
    "adreno": """mov.u32u32 r0.x, 0
l1:
isam (f32)(xyzw)r1.x, r0.x, s#0, t#1
(sy)(rpt3)mad.f32 r2.x, r1.x, (r)r1.x, (r)r2.x
br p0.x, #l1
end""",
    "radeon": """BB0
    v1: %1:v[0] = v_mov_b32 0
BB1
    v4: %2:v[4-7] = buffer_load_format_xyzw %3:s[8-11], %1:v[0], 0 idxen
    v1: %4:v[4] = v_mac_f32 %5:s[6], %6:v[8], %4:v[4]
    s_cbranch_scc1 block:BB1
BB2
    s_endpgm""",
    "intel": """mov(16)         g2<1>UD         0x00000000UD    { align1 1H };

LABEL0:
send(16)        g26UD           g46UD           nullUD          0x0485a002      0x00000000
                sampler MsgDesc: ld_lz SIMD16 Surface = 2 Sampler = 0  mlen 2 ex_mlen 0 rlen 8 { };
mad(16)         g47<1>F         g26<8,8,1>F     g3.6<0,1,0>F    g34<1,1,1>F { align1 1H };
while(16)       JIP:  LABEL0                                    { align1 1H };""",
    "raspberry": """nop                           ; mov r0, 0
nop                           ; fmul rf5, r1, r5            ; ldtmu.r4
nop                           ; nop
bu.anynap  -48, r:unif
nop                           ; nop
nop                           ; nop
nop                           ; nop""",
    "mali": """   MOV.i32 r0, 0x0
   TEX_FETCH.slot0.32.1d @r2:r3:r4:r5, @r0, ^r2
   FMA.f32 r1, ^r6, u10, ^r2
   BRANCHZ.eq ^r1.h0, offset:-3
   NOP.end""",
}


@pytest.mark.parametrize("maker", ASSEMBLY)
def test_assembly_is_read(maker):
    code: Code = READERS[maker](ASSEMBLY[maker], 16)
    ((first, last),) = code.loops
    body = code.instructions[first:last + 1]
    assert first == 1
    assert sum(cost.multiplies for cost in body) == (4 if maker == "adreno" else 1)
    assert sum(cost.bytes for cost in body) == (4 if maker == "raspberry" else 16)
    assert any(cost.is_load for cost in body)
    assert code.instructions[0].multiplies == 0 and not code.instructions[0].is_load


def push_of(words: dict[int, int]) -> bytes:
    """Push constants, by their number."""
    return b"".join(words.get(i, 0).to_bytes(4, "little", signed=True) for i in range(32))


def product(rows: int, columns: int, texels: int) -> tuple[str, tuple, bytes, tuple[int, int, int]]:
    """A product by tiles of 4 by 4: its shader, constants, push constants and workgroups."""
    constants = ((7, 0), (8, 0), (15, 0), (16, 0), (100, 64), (102, 0), (103, 1))
    push = push_of({0: rows, 1: 1, 2: texels, 3: columns, 4: texels, 5: columns // 4})
    tiles = rows // 4 * (columns // 4)
    return "matmul_4x4.texel.f32", constants, push, (-(-tiles // 64), 1, 1)


def test_rounds_of_loops_are_counted():
    """A tile of 4 by 4 multiplies 64 numbers for each texel of the summed dimension."""
    shader, constants, push, groups = product(64, 64, 24)
    code = pruned_code(shader, constants)
    found = counts(code, constants, push, groups)
    assert found.invocations == 64
    assert found.loops[0].rounds == 24.0
    twice = counts(code, constants, product(64, 64, 48)[2], groups)
    assert (twice.multiplies - found.multiplies, twice.loaded - found.loaded) == (
        24 * 64, 24 * 8 * 16)


def capture_of(code: str, texels: int) -> Capture:
    shader, constants, push, groups = product(1024, 64, texels)
    line = {"module": digest_of(shader, constants), "nbytes": 0, "result": 0, "cpu_ms": 1.0,
            "constants": [list(pair) for pair in constants], "said": "COMPUTE shader: 2 threads",
            "executables": [{"subgroup": 16, "code": code}]}
    return Capture("", [line], {"run": [[shader, constants, push.hex(), groups]]}, "")


def test_time_grows_with_the_rounds():
    """A loop of 64 multiplications, 8 loads and one slot more, on Mali-G610."""
    loads = "   TEX_FETCH.slot0.32.1d @r2:r3:r4:r5, @r0, ^r2\n" * 8
    code = ("   MOV.i32 r0, 0x0\n" + loads + "   FMA.f32 r1, ^r6, u10, ^r2\n" * 64
            + "   BRANCHZ.eq ^r1.h0, offset:-73\n   NOP.end\n")
    has = HARDWARE["mali-g610"]
    for texels in (24, 240):
        ((row,),) = costs_of("mali-g610", capture_of(code, texels)).values()
        waves, units = 64 * row.groups[0] // 16, has.cores * has.simds
        assert row.bounds["arithmetic"] == pytest.approx(
            -(-waves // units) * (1 + 65 * texels) / has.ghz / 1e9)
        assert row.bounds["memory"] == pytest.approx(
            -(-row.groups[0] // has.cores) * 64 * 8 * 16 * texels / has.bytes / has.ghz / 1e9)
        assert row.bounds["shared memory"] == 0
        assert row.bounds["latency"] == pytest.approx(
            (texels * has.load_clocks + 1 + 65 * texels) / has.ghz / 1e9)
        assert row.seconds == max(row.bounds.values()) == row.bounds[row.bound]
        assert row.slots == pytest.approx((1 + 65 * texels) / (64 * texels))


CELL = {"error": "", "pipelines": 12, "spilling": {"a": 3}, "occupancy": 4, "compile_cpu_ms": 120,
        "failed": [], "runs_ms": {"run": 12.34}}


@pytest.mark.parametrize(("device", "model", "changes", "text"), [
    ("adreno-740", "toy.pte", {}, "12, 1, 4, 120; 12.3"),
    ("mali-g610", "folder/resnet18-base.pte", {"runs_ms": {"run": 27.4}},
     "12, 1, 4, 120; 27.4 (2.00)"),
    ("intel-skl", "toy.pte", {"runs_ms": {"prefill": 120.4, "decode": 0.5}, "failed": ["b"]},
     "12, 1, 4, 120; 120; 0.5; 1 do not compile"),
    ("intel-skl", "toy.pte", {"error": "exit 1"}, "does not load")])
def test_cells_of_the_table(device, model, changes, text):
    assert text_of(device, model, {**CELL, **changes}) == text
