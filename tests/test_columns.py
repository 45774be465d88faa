"""Tables for people: no column runs into its neighbour, however wide what is in it."""

from dataclasses import replace

from vkrt.cli.bench import Load, Result, Times, text
from vkrt.method.profile import Profile, ProfileStep
from vkrt.report.columns import columns
from vkrt.report.memory import MemoryReport, ShapeRecord


def cells(line):
    """What two or more blanks keep apart."""
    return [cell for cell in line.split("  ") if cell]


def test_columns():
    lines = columns([("name", "bytes"), ("a", "1,000,000"), ("much longer", "2")])
    assert lines == ["name             bytes", "a            1,000,000", "much longer          2"]
    assert columns([("node", "operator"), ("3", "x")], left=(1,)) == ["node  operator", "   3  x"]


LONG = "an.operator.with.a.name.that.is.longer.than.any.column.was"


def test_profiles():
    step = ProfileStep(index=0, node=123456, operator=LONG, kind="dispatch", kernel=LONG + ".f32",
                       storage="texel", groups=123456789, local_size=1024, seconds=12345.678,
                       bytes_read=10**15, bytes_written=0, flops=10**19, share=1.0)
    profile = Profile(device="d", method="m", clock="device", runs=1, seconds=1.0,
                      steps=(step, replace(step, operator="short", kernel="k", groups=1)),
                      ceiling=None, timeline=(0.0, 1.0, []))
    lines = profile.table().splitlines()
    header, first, second = (cells(line) for line in lines[2:5])
    assert len(header) == len(first) == len(second) == 10
    assert [c.strip() for c in first[:4]] == ["123456", LONG, LONG + ".f32", "123456789x1024"]
    totals = [cells(line) for line in lines[6:9]]
    assert [len(total) for total in totals] == [7, 7, 7]


def test_benches():
    times = Times(median=98765.4321, min=98765.4321, cpu=123456.789)
    load = Load(12345.6789, 123456.789)
    result = Result(model="models/" + LONG + ".pte", device="d", cold=load, cold_why="", warm=load,
                    first=load, runs=1, times=times, flops=10**18)
    lines = text([result]).splitlines()
    assert [len(cells(line)) for line in lines[1:3]] == [7, 7]
    assert cells(lines[2])[0] == LONG + ".pte"


def test_shapes_of_dynamic_programs():
    sizes = "[1,3,1024,1024] [1,77,1024] [1,77] [1,4,128,128]"
    report = MemoryReport(shapes=[ShapeRecord(sizes, 10**15, 10**15, 10**15)])
    header, row = report.table().splitlines()[-2:]
    assert len(cells(header)) == len(cells(row)) == 4 and cells(row)[0] == sizes
