"""The drivers' rows: complete, checked, and followed by kernels; the command that writes one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from vkrt.cli import main as cli
from vkrt.cli import tune
from vkrt.device import policy, rows
from vkrt.errors import InputError
from vkrt.ops import tiles
from vkrt.ops.lowering import lower
from vkrt.shader import catalog
from vkrt.work.target import LONG, Target
from vkrt.work.tuning import Tuning

SHADERS = Path(__file__).parents[1] / "shaders"
PACKAGE = sorted(Path(rows.PACKAGE).glob("*.json"))
LAVAPIPE, SWIFTSHADER, OTHER = 13, 10, 12345


def info(driver_id: int, name: str = "a device") -> SimpleNamespace:
    return SimpleNamespace(driver_id=driver_id, name=name)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes files of rows into the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = Path(rows.user_folder())
    folder.mkdir(parents=True)

    def write(name, fields):
        text = fields if isinstance(fields, str) else json.dumps(fields)
        (folder / name).write_text(text, encoding="utf-8")
        rows.rows.cache_clear()

    rows.rows.cache_clear()
    yield write
    rows.rows.cache_clear()


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.stem)
def test_rows_are_complete(path):
    row = rows.read(path)
    assert set(row.fields) | {"device", "ceiling"} == set(rows.FIELDS)
    for name in row.fields["tiles"]:
        feature = ".shuffle" if name in rows.WIDE else ""
        assert name == "2x4" or f"conv2d_{name}.texel.f32{feature}" in catalog()
        assert name == "1x4" or f"matmul_{name}.texel.f32{feature}" in catalog()
    made = policy.policy_from(row)
    assert len(made.tuning.tiles) == len(row.fields["tiles"])
    if row.fields["driver_id"] is not None:
        assert policy.policy_of(info(row.fields["driver_id"])) == made
        assert row.fields["measured"] and made.ceiling is not None


def test_drivers_that_nobody_measured():
    """Few pipelines, and nothing that a driver with a row needs."""
    made = policy.policy_of(info(OTHER))
    assert made == policy.policy_from(rows.read(Path(rows.PACKAGE) / "default.json"))
    assert not made.specialize and not made.maps_files and not made.winograd
    assert made.loop_limit is made.max_texels is made.ceiling is None
    # In a GPU's shape, with all that the device has.
    assert made.tuning.shares and set(made.features) == set(rows.FEATURES) == set(build_features())


def build_features():
    """The names that shaders/build.py knows."""
    spec = importlib.util.spec_from_file_location("build", SHADERS / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build.FEATURES


def test_features_are_those_that_are_there(own):
    """And switched on, and wanted by the row; CPU drivers' rows want none."""
    has = dict.fromkeys(["subgroup_basic", "subgroup_arithmetic", "float16"], True)
    device = info(OTHER)
    device.features, device.driver_info = {**has, "storage8": False}, ""
    device.limits = limits_of_a_device()
    assert policy.target_of(device).features == {"subgroups", "float16"}
    assert policy.target_of(device, enabled={"float16", "subgroup_basic"}).features == {"float16"}
    assert policy.target_of(device, enabled=set()).features == frozenset()
    own("mine.json", {"driver_id": OTHER, "features": ["float16", "dot"]})
    assert policy.target_of(device).features == {"float16"}
    for driver in (LAVAPIPE, SWIFTSHADER):
        device.driver_id = driver
        target = policy.target_of(device)
        assert not target.features and not target.tuning.shares
    assert (target.max_invocations, target.max_shared) == (256, 32768)


def limits_of_a_device():
    """Limits of a device, as `vkrt.DeviceInfo` has them."""
    names = ("maxTexelBufferElements", "maxStorageBufferRange", "maxImageDimension3D",
             "minStorageBufferOffsetAlignment", "minTexelBufferOffsetAlignment")
    return {**dict.fromkeys(names, 256), "maxComputeWorkGroupCount": (65535, 65535, 65535),
            "maxComputeWorkGroupInvocations": 512, "maxComputeWorkGroupSize": (256, 256, 64),
            "maxComputeSharedMemorySize": 32768}


def test_work_is_spread_over_groups():
    assert Target().spread(5) == (5, 1, 1)
    assert Target(max_groups=4).spread(5) == (4, 2, 1)


def test_rows_of_the_user_s_win(own):
    own("mine.json", {"driver_id": LAVAPIPE, "specialize": {"conv2d": ["X"]}})
    mine, package = (policy.policy_of(info(number)) for number in (LAVAPIPE, SWIFTSHADER))
    assert mine.specialize == {"conv2d": ["X"]} != package.specialize
    # What a file leaves out is that of the package's row.
    assert mine.loop_limit == 60000 and mine.winograd and mine.tuning.lanes == 64
    own("new.json", {"driver_id": OTHER, "lanes": 7})
    assert policy.policy_of(info(OTHER)).tuning.lanes == 7
    assert policy.policy_of(info(OTHER + 1)).tuning.lanes == 4096


def test_a_device_s_row_comes_first(own):
    own("a.json", {"driver_id": OTHER, "lanes": 1})
    own("b.json", {"driver_id": OTHER, "device": "^Large .*", "lanes": 2})
    own("c.json", {"device": "small", "lanes": 3})
    own("d.json", {"lanes": 4})
    lanes = [policy.policy_of(info(*device)).tuning.lanes for device in (
        (OTHER, "a device"), (OTHER, "Large device"), (OTHER, "small one"), (1, "small one"),
        (1, "a device"), (LAVAPIPE, "llvmpipe"))]
    assert lanes == [1, 2, 3, 3, 4, 64]


@pytest.mark.parametrize(("fields", "words"), [
    ("{", "not JSON: Expecting property"),
    ([], "the file is no object"),
    ({"driverid": 3}, "unknown field 'driverid'; there are driver_id, device"),
    ({"driver_id": "13"}, 'driver_id is "13", expected a whole number from 0 on or null'),
    ({"storage": ["texel"]}, r"storage is \[.*expected one of texel, buffer, texture3d"),
    ({"specialize": True}, "specialize is true, expected an object of shaders and lists"),
    ({"specialize": {"copy": [1]}}, r'specialize is {"copy": \[1\]}, expected an object of'),
    ({"features": ["wings"]}, r'features is \["wings"\], expected a list of subgroups, float16'),
    ({"shares": 1}, "shares is 1, expected true or false"),
    ({"winograd": 1}, "winograd is 1, expected true or false"),
    ({"device": "("}, r'device is "\(", expected a regular expression'),
    ({"tiles": {"9x9": 2.0}}, "tiles lacks 8x8, "),
    ({"tiles": {**dict.fromkeys(rows.TILES, 2.0), "9x9": 2.0}}, "unknown field 'tiles.9x9'"),
    ({"tiles": dict.fromkeys(rows.TILES, 0)}, "tiles.8x8 is 0, expected a number above 0"),
    ({"speed": {"bytes": 1e9}}, "speed lacks multiply_adds, dispatch, reads"),
    ({"ceiling": 1e9}, "ceiling is no object"),
    ({"unlimited_from": "new"}, 'unlimited_from is "new", expected a version'),
    ({"why": {"tiles": 1}}, 'why is {"tiles": 1}, expected an object of texts'),
])
def test_damaged_rows_are_refused(own, fields, words):
    """With the names of the file and the field, whatever the driver is."""
    own("mine.json", fields)
    with pytest.raises(InputError, match=rf"vkrt/drivers/mine\.json: {words}"):
        policy.policy_of(info(SWIFTSHADER))


def shaders(graph, **tuning):
    work = lower(graph, Target(max_texels=1 << 26, tuning=Tuning(**tuning)))
    return {step.shader.split(".")[0] for step in work.steps} - {"copy"}


def test_tiles_follow_the_rates():
    graph = tune.convolution(16, 8, 3)
    for tile in tiles.CONVOLUTIONS:
        wanted = f"conv2d_{tile[0]}x{tile[1]}"
        assert shaders(graph, tiles=((tile, 1.0),)) == {wanted}
        # Work of one lane at a time: what counts is the rate alone.
        rates = tuple((t, 9.0 if t == tile else 1.0) for t, _ in Tuning().tiles)
        assert shaders(graph, tiles=rates, lanes=1) == {wanted}


def test_idle_lanes_cost_nothing():
    """Where there are lanes to spare, more and smaller tiles finish first."""
    few, many = Tuning(lanes=1), Tuning(lanes=100_000)
    assert tiles.choose(few, 64, 64, 64) == (8, 8)
    assert tiles.choose(many, 64, 64, 64) == (1, 4)
    assert tiles.choose(many, 64, 64, 64, allowed=tiles.PRODUCTS) == (2, 4)


def test_width_of_depthwise():
    graph = tune.convolution(16, 4, 3, depthwise=True)
    assert shaders(graph, wide_depthwise=4) == {"conv2d_depthwise_8"}
    assert shaders(graph, wide_depthwise=5) == {"conv2d_depthwise_2"}


def test_what_shares_is_measured_on_kernels_that_do():
    """Each of the programs has other kernels then, without and with what a device may have."""
    for graph in (*(tune.convolution(*shape) for shape in tune.SHARED_CONVOLUTIONS),
                  *(tune.linear(*shape) for shape in tune.SHARED_PRODUCTS)):
        alone, together = (shaders(graph, shares=shares, lanes=4096) for shares in (False, True))
        assert len(alone) == len(together) == 1
        assert together != alone


@pytest.mark.parametrize(("before", "gain", "chosen"), [
    (False, 1.5, True), (False, 1.01, False), (False, 0.5, False),
    (True, 1.5, True), (True, 0.99, True), (True, 0.5, False)])
def test_sharing_changes_for_what_is_clearly_better(before, gain, chosen):
    class Figures:
        kept = SimpleNamespace(fields={"shares": before})

        def seconds(self, graph, *, shares):
            return 1.0 if shares else gain

    found, why = tune.tune_shares(Figures())
    assert found is chosen
    assert why.startswith(f"kernels whose workgroups share nothing take {gain:.2f}, {gain:.2f}, ")


def test_min_groups():
    assert Target(tuning=Tuning(min_groups=1)).cover(64, LONG) == (64, (1, 1, 1))
    assert Target(tuning=Tuning(min_groups=8)).cover(64, LONG) == (8, (8, 1, 1))


@pytest.fixture
def few(monkeypatch):
    """Measures little: what is written is what matters."""
    monkeypatch.setattr(tune, "CONVOLUTIONS", ((16, 8, 3),))
    monkeypatch.setattr(tune, "DEPTHWISE", ((16, 2),))
    monkeypatch.setattr(tune, "SHARED_CONVOLUTIONS", ((32, 8, 3),))
    monkeypatch.setattr(tune, "SHARED_PRODUCTS", ((32, 64),))
    monkeypatch.setattr(tune, "tune_storage", lambda bench: ("buffer", "for the test"))
    monkeypatch.setattr(tune, "tune_ceiling", lambda bench: (
        {"flops": 4e9, "bytes": 2e9, "per_core": False}, "for the test"))


@pytest.mark.driver
def test_command(device, few, own, capsys, tmp_path):
    """The row measured on this device is printed, written, and in use from then on."""
    before = policy.policy_of(device.info)
    copy = tmp_path / "copies" / "row.json"
    assert cli.main(["tune", "--runs", "1", "--write", "--output", str(copy), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    written = Path(rows.user_folder()) / tune.file_name(device.info)
    assert rows.read(written).fields == rows.read(copy).fields == fields
    assert fields["driver_id"] == device.info.driver_id and device.info.name in fields["measured"]
    assert fields["tiles"]["1x4"] == 8.0 and before.storage == "texel"
    after = policy.policy_of(device.info)
    assert after == policy.policy_from(rows.read(written)) and after.storage == "buffer"
    # What is not measured is kept.
    assert (after.loop_limit, after.speed) == (before.loop_limit, before.speed)
    rows.rows.cache_clear()


@pytest.mark.driver
def test_users_files_are_not_written_over(few, capsys, tmp_path):
    """What is no row stays, and is found before anything is measured."""
    path = tmp_path / "row.json"
    path.write_text('{"settings": 1}')
    assert cli.main(["tune", "--runs", "1", "--output", str(path)]) == 2
    assert "row.json: a file is there that is not a row of a driver" in capsys.readouterr().err
    with pytest.raises(InputError, match="not written over"):
        rows.write(str(path), rows.row_of(0, "").fields)
    assert path.read_text() == '{"settings": 1}'


@pytest.mark.driver
def test_the_first_row_of_a_driver(device, few, monkeypatch):
    """Its speed is made of what was measured; nothing else of default.json's reasons is its own."""
    default = rows.read(Path(rows.PACKAGE) / "default.json")
    monkeypatch.setattr(tune, "row_of", lambda *device: default)
    row = tune.tune(tune.Bench(device, 1))
    assert set(row) | {"device"} == set(rows.FIELDS)
    assert row["speed"] == {"multiply_adds": 1e9, "bytes": 1e9, "dispatch": 5e-6, "reads": 2e9}
    assert set(row["why"]) == {"tiles", "shares", "wide_depthwise", "storage", "specialize",
                               "ceiling"}
    assert policy.policy_of(device.info) != policy.policy_from(default)  # as it was
