"""Driver profiles: complete, checked, and followed by kernels; the command that writes one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from vkrt.cli import tune
from vkrt.device import policy, rows
from vkrt.errors import InputError
from vkrt.lowering.lowering import lower
from vkrt.ops import tiles
from vkrt.shader import shader_library
from vkrt.vk.info import DeviceInfo
from vkrt.work.target import LONG, Target
from vkrt.work.tuning import Tuning

SHADERS = Path(__file__).parents[1] / "shaders"
PACKAGE = sorted(Path(rows.PACKAGE).glob("*.json"))
LAVAPIPE, SWIFTSHADER, OTHER = 13, 10, 12345


def info(driver_id: int, name: str = "a device", says: str = "", vendor: int = 0,
         number: int = 0) -> DeviceInfo:
    return DeviceInfo(0, name, "other", vendor, 0, driver_id, "", says, "1.1.0",
                      driver_version=number)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes files of entries into the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = Path(rows.user_folder())
    folder.mkdir(parents=True)

    def write(name, fields):
        text = fields if isinstance(fields, str) else json.dumps(fields)
        (folder / name).write_text(text, encoding="utf-8")
        rows.entries.cache_clear()

    rows.entries.cache_clear()
    yield write
    rows.entries.cache_clear()


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.stem)
def test_entries_of_the_package(path):
    """The one for all devices sets every field; the others say for which driver they are."""
    entry = rows.read(str(path))
    assert bool(entry.match) == (path.stem != "default")
    if not entry.match:
        assert set(entry.fields) | {"match", "why", "ceiling"} == set(rows.FIELDS)
    assert entry.fields and set(entry.why) <= set(entry.fields)
    assert {"driver_id", "vendor_id"} & set(entry.match) or not entry.match
    # Who reads rates of tiles asks what they are the rates of.
    assert ("tiles" not in entry.fields or "measured" in entry.fields
            or entry.why["tiles"].startswith("not measured"))
    # Where nothing was measured each value says why it is another one than the drivers' of before.
    assert not entry.match or "measured" in entry.fields or set(entry.why) == set(entry.fields)


@pytest.mark.parametrize("driver", [LAVAPIPE, SWIFTSHADER, OTHER])
@pytest.mark.parametrize("says", ["", "Mesa 22.3.6", "Mesa 25.0.7"])
def test_profiles_are_complete(driver, says):
    profile = rows.profile_of(info(driver, says=says))
    assert set(profile.fields) | {"match", "why", "ceiling"} == set(rows.FIELDS)
    for name in profile.fields["tiles"]:
        feature = ".shuffle" if name in rows.WIDE else ""
        assert name == "2x4" or f"conv2d_{name}.texel.f32{feature}" in shader_library()
        assert name == "1x4" or f"matmul_{name}.texel.f32{feature}" in shader_library()
    made = policy.policy_of(info(driver, says=says))
    assert len(made.tuning.tiles) == len(profile.fields["tiles"])
    assert profile.is_measured == (driver != OTHER) == (made.ceiling is not None)


def test_drivers_that_nobody_measured():
    """Few pipelines, and nothing that a measured driver needs."""
    made = policy.policy_of(info(OTHER))
    assert made == policy.policy_from(rows.read(f"{rows.PACKAGE}/default.json"))
    assert not made.specialize and not made.maps_files and not made.winograd
    assert made.loop_limit is made.max_texels is made.ceiling is None
    # In a GPU's shape, with all that the device has.
    known = set(run_path(str(SHADERS / "build.py"))["FEATURES"])
    assert made.tuning.shares and set(made.features) == set(rows.FEATURES) == known


def test_lavapipe_s_versions():
    """What was measured on 25.0.7 is for 24 too, but for the loops, whose limit ends with 25."""
    old, between, new = (policy.policy_of(info(LAVAPIPE, says=f"Mesa {version} (LLVM 15.0.6)"))
                         for version in ("22.3.6", "24.2.8", "25.0.7-2"))
    assert (old.loop_limit, between.loop_limit, new.loop_limit) == (60000, 60000, None)
    assert replace(between, loop_limit=None) == new != replace(old, loop_limit=None)
    # Lanes share weights on both; where they cannot, the larger tile is the slower one on 25.
    alone = {"allowed": tiles.PRODUCTS}
    for tuning, chosen in ((old.tuning, (8, 8)), (new.tuning, (4, 8))):
        assert tiles.choose(tuning, 1024, 64, 64) == (4, 16)
        assert tiles.choose(tuning, 1024, 64, 64, **alone) == chosen
    assert "25.0.7" in new.ceiling.why and "22.3.6" in old.ceiling.why


# Vendor and driver of devices -> what their entries set beside default.json
ARM, BROADCOM, QUALCOMM, AMD, INTEL, NVIDIA = 0x13B5, 0x14E4, 0x5143, 0x1002, 0x8086, 0x10DE
GPUS = {
    "panvk": (ARM, 20, {"arm.json"}), "Arm's own": (ARM, 9, {"arm.json"}),
    "v3dv": (BROADCOM, 19, {"broadcom.json"}),
    "turnip": (QUALCOMM, 18, {"qualcomm.json"}), "Qualcomm's own": (QUALCOMM, 8, {"qualcomm.json"}),
    "RADV": (AMD, 3, {"amd.json"}), "AMD's own": (AMD, 1, {"amd.json"}),
    "anv": (INTEL, 6, {"anv.json", "intel.json"}), "Intel's own": (INTEL, 5, {"intel.json"}),
    "NVIDIA's own": (NVIDIA, 4, {"nvidia.json"}), "NVK": (NVIDIA, 24, {"nvidia.json"})}


@pytest.mark.parametrize(("vendor", "driver", "files"), GPUS.values(), ids=GPUS)
def test_gpus(vendor, driver, files):
    """Nobody has measured one; each value that is not for all devices has its reason."""
    profile = rows.profile_of(info(driver, vendor=vendor))
    special = {name for name, entry in profile.entries.items() if entry.match}
    assert {Path(profile.entries[name].path).name for name in special} == files
    assert not profile.is_measured and all(profile.entries[name].why[name] for name in special)
    made = policy.policy_of(info(driver, vendor=vendor))
    assert made.winograd and made.loop_limit is None and not made.maps_files
    assert made.tuning.shares == (vendor not in (ARM, BROADCOM))
    assert ("float16" in made.features) == (driver != 6)
    if not made.tuning.shares:
        for sizes in ((56 * 56, 64), (14 * 14, 960), (4096, 4096)):
            assert tiles.choose(made.tuning, *sizes) == (4, 4)


@pytest.mark.parametrize(("driver", "vendor", "files"), [
    (LAVAPIPE, 0x10005, {"default.json", "llvmpipe-24.json", "llvmpipe-loops.json",
                         "llvmpipe.json"}),
    (SWIFTSHADER, 0x1AE0, {"default.json", "swiftshader.json"})])
def test_drivers_of_processors_are_no_gpus(driver, vendor, files):
    """Whatever else they are called: no entry of a GPU is for them."""
    for says in ("Mesa 22.3.6", "Mesa 24.2.8", "Mesa 25.0.7", ""):
        profile = rows.profile_of(info(driver, "llvmpipe (LLVM 15.0.6, 256 bits)", says, vendor))
        assert {Path(entry.path).name for entry in profile.entries.values()} <= files
        assert profile.fields == rows.profile_of(info(driver, says=says)).fields


def test_features_are_those_that_are_there(own):
    """And switched on, and wanted by the profile; those of CPU drivers want none."""
    has = dict.fromkeys(["subgroup_basic", "subgroup_arithmetic", "float16"], True)
    device = replace(info(OTHER), features={**has, "storage8": False}, limits=limits_of_a_device())
    assert policy.target_of(device).features == {"subgroups", "float16"}
    assert policy.target_of(device, enabled={"float16", "subgroup_basic"}).features == {"float16"}
    assert policy.target_of(device, enabled=set()).features == frozenset()
    # Products of four numbers that a device only makes of others are no faster.
    for fast in (False, True):
        dots = replace(device, features={"integer_dot_product": True,
                                         "accelerated_dot_product": fast})
        assert ("dot" in policy.target_of(dots).features) == fast
    own("own.json", {"match": {"driver_id": OTHER}, "features": ["float16", "dot"]})
    assert policy.target_of(device).features == {"float16"}
    for driver in (LAVAPIPE, SWIFTSHADER):
        target = policy.target_of(replace(device, driver_id=driver))
        assert not target.features and not target.tuning.shares
    assert (target.max_invocations, target.max_shared) == (256, 32768)


def limits_of_a_device():
    """Limits of a device, as `vkrt.DeviceInfo` has them."""
    names = ("maxTexelBufferElements", "maxStorageBufferRange", "maxMemoryAllocationSize",
             "maxImageDimension3D", "minStorageBufferOffsetAlignment",
             "minTexelBufferOffsetAlignment")
    return {**dict.fromkeys(names, 256), "maxComputeWorkGroupCount": (65535, 65535, 65535),
            "maxComputeWorkGroupInvocations": 512, "maxComputeWorkGroupSize": (256, 256, 64),
            "maxComputeSharedMemorySize": 32768}


def test_work_is_spread_over_groups():
    assert Target().grid(5) == (5, 1, 1)
    assert Target(max_groups=4).grid(5) == (4, 2, 1)


def test_entries_of_the_user_s_win(own):
    own("own.json", {"match": {"driver_id": LAVAPIPE}, "specialize": {"conv2d": ["X"]}})
    own_policy, package = (policy.policy_of(info(number)) for number in (LAVAPIPE, SWIFTSHADER))
    assert own_policy.specialize == {"conv2d": ["X"]} != package.specialize
    # What a file leaves out is what the package's entries say.
    assert own_policy.loop_limit == 60000 and own_policy.winograd and own_policy.tuning.lanes == 64
    own("new.json", {"match": {"driver_id": OTHER}, "lanes": 7})
    assert policy.policy_of(info(OTHER)).tuning.lanes == 7
    assert policy.policy_of(info(OTHER + 1)).tuning.lanes == 4096
    # A person who chose a number has measured nothing.
    assert not rows.profile_of(info(OTHER)).is_measured
    # For all drivers, but not before the one for lavapipe that the user wrote
    own("own.json", {"match": {"driver_id": LAVAPIPE}, "min_groups": 5})
    own("all.json", {"lanes": 8, "min_groups": 6})
    made = policy.policy_of(info(LAVAPIPE, says="Mesa 25.0.7")).tuning
    assert (made.lanes, made.min_groups) == (8, 5)


def test_entries_add_up(own):
    """A later and more exact one over another, field by field, with its reason."""
    own("a.json", {"match": {"driver_id": OTHER}, "lanes": 1, "min_groups": 1,
                   "why": {"lanes": "few", "min_groups": "small"}})
    own("b.json", {"match": {"driver_id": OTHER, "device": "^Large .*"}, "lanes": 2})
    own("c.json", {"match": {"device": "small"}, "lanes": 3, "why": {"lanes": "small"}})
    own("d.json", {"lanes": 4, "min_groups": 4})
    own("e.json", {"match": {"vendor_id": 7}, "lanes": 5})
    found = [policy.policy_of(info(number, name, vendor=vendor)).tuning
             for number, name, vendor in (
        (OTHER, "a device", 0), (OTHER, "Large device", 0), (OTHER, "small one", 7),
        (1, "small one", 7), (1, "a device", 7), (1, "a device", 8))]
    assert [made.lanes for made in found] == [1, 2, 3, 3, 5, 4]
    assert [made.min_groups for made in found] == [1, 1, 1, 4, 4, 4]
    profile = rows.profile_of(info(OTHER, "small one"))
    assert {name: (Path(profile.entries[name].path).name, profile.entries[name].why.get(name))
            for name in ("lanes", "min_groups", "reads_ahead")} == {
        "lanes": ("c.json", "small"), "min_groups": ("a.json", "small"),
        "reads_ahead": ("default.json", None)}


@pytest.mark.parametrize(("says", "number", "lanes"), [
    ("Mesa 22.3.6 (LLVM 15.0.6)", 1, 1), ("Mesa 23.0 (LLVM 15.0.6)", 1, 2), ("9.9.9", 1, 1),
    ("Mesa 24.0.0", 1, 3), ("Mesa 24.3.4-1ubuntu1", 1, 3), ("Mesa 25.0.7-2~bpo12+1", 1, 4),
    ("Mesa 25.2.1", 1, 4), ("535.104.05", 1, 4), ("no version 7", 24 << 22 | 1 << 12 | 2, 3),
    ("", 0, 1)])
def test_entries_of_versions(own, says, number, lanes):
    """By what the driver says of itself, else by its number; the one from a later version on
    comes after the one from an earlier one on, whatever their files are called."""
    own("d.json", {"match": {"driver_id": OTHER}, "lanes": 1})
    own("c.json", {"match": {"driver_id": OTHER, "from": "23.0", "below": "24"}, "lanes": 2})
    own("b.json", {"match": {"driver_id": OTHER, "from": "24.0"}, "lanes": 3})
    own("a.json", {"match": {"driver_id": OTHER, "from": "25.0.7"}, "lanes": 4})
    assert policy.policy_of(info(OTHER, says=says, number=number)).tuning.lanes == lanes


@pytest.mark.parametrize(("fields", "words"), [
    ("{", "not JSON: Expecting property"),
    ([], "the file is no object"),
    ({"driver_id": 3}, "unknown field 'driver_id'; there are match, storage"),
    ({"match": {"version": "3"}}, "unknown field 'match.version'; there are vendor_id, driver_id"),
    ({"match": {"driver_id": "13"}}, 'match.driver_id is "13", expected a whole number from 0 on'),
    ({"match": 13}, "match is no object"),
    ({"match": {"from": "new"}}, 'match.from is "new", expected a version such as "25.0"'),
    ({"match": {"below": "²"}}, "match.below is .*expected a version"),
    ({"match": {"from": "25."}}, "match.from is .*expected a version"),
    ({"storage": ["texel"]}, r"storage is \[.*expected one of texel, buffer, texture3d"),
    ({"specialize": True}, "specialize is true, expected an object of shaders and lists"),
    ({"specialize": {"copy": [1]}}, r'specialize is {"copy": \[1\]}, expected an object of'),
    ({"features": ["wings"]}, r'features is \["wings"\], expected a list of subgroups, float16'),
    ({"shares": 1}, "shares is 1, expected true or false"),
    ({"winograd": 1}, "winograd is 1, expected true or false"),
    ({"match": {"device": "("}}, r'match.device is "\(", expected a regular expression'),
    ({"tiles": {"9x9": 2.0}}, "tiles lacks 8x8, "),
    ({"tiles": {**dict.fromkeys(rows.TILES, 2.0), "9x9": 2.0}}, "unknown field 'tiles.9x9'"),
    ({"tiles": dict.fromkeys(rows.TILES, 0)}, "tiles.8x8 is 0, expected a number above 0"),
    ({"speed": {"bytes": 1e9}}, "speed lacks multiply_adds, dispatch, reads"),
    ({"ceiling": 1e9}, "ceiling is no object"),
    ({"why": {"tiles": 1}}, 'why is {"tiles": 1}, expected an object of texts'),
])
def test_damaged_entries_are_refused(own, fields, words):
    """With the names of the file and the field, whatever the driver is."""
    own("own.json", fields)
    with pytest.raises(InputError, match=rf"vkrt/drivers/own\.json: {words}"):
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


def test_height_of_depthwise():
    """Two rows at a time, where there are two and the kernel has few taps."""
    for kernel, tall, tiles_of_images in ((3, True, 3 * 5), (3, False, 2 * 9), (5, True, 2 * 9)):
        target = Target(tuning=Tuning(wide_depthwise=3, tall_depthwise=tall))
        work = lower(tune.convolution(8, 9, kernel, depthwise=True), target)
        steps = [step for step in work.steps if "conv2d_depthwise_8" in step.shader]
        assert {step.invocations for step in steps} == {2 * tiles_of_images}


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
    assert Target(tuning=Tuning(min_groups=1)).dispatch_size(64, LONG) == (64, (1, 1, 1))
    assert Target(tuning=Tuning(min_groups=8)).dispatch_size(64, LONG) == (8, (8, 1, 1))


@pytest.fixture
def few(monkeypatch):
    """Measures little: what is written is what matters."""
    monkeypatch.setattr(tune, "CONVOLUTIONS", ((16, 8, 3), (16, 8, 1)))
    monkeypatch.setattr(tune, "DEPTHWISE", ((16, 2),))
    monkeypatch.setattr(tune, "TALL_DEPTHWISE", ((16, 4),))
    monkeypatch.setattr(tune, "SHARED_CONVOLUTIONS", ((32, 8, 3),))
    monkeypatch.setattr(tune, "SHARED_PRODUCTS", ((32, 64),))
    monkeypatch.setattr(tune, "tune_storage", lambda bench: ("buffer", "for the test"))
    monkeypatch.setattr(tune, "tune_ceiling", lambda bench: (
        {"flops": 4e9, "bytes": 2e9, "per_core": False}, "for the test"))


def test_command(device, few, own, json_of, tmp_path):
    """The entry measured on this device is printed, written, and in use from then on."""
    before, was_measured = policy.policy_of(device.info), rows.profile_of(device.info).is_measured
    own("all.json", {"loop_limit": 12345, "why": {"loop_limit": "a guess"}})
    copy = tmp_path / "copies" / "row.json"
    fields = json_of("tune", "--runs", "1", "--write", "--output", copy)
    written = Path(rows.user_folder()) / tune.file_name(device.info)
    assert json.loads(written.read_text()) == json.loads(copy.read_text()) == fields
    entry = rows.read(str(written))
    assert entry.matches(device.info) and entry.match["driver_id"] == device.info.driver_id
    assert not entry.matches(replace(device.info, driver_info="", driver_version=0))
    assert entry.fields["tiles"]["1x4"] == 8.0 and before.storage == "texel"
    assert device.info.name in entry.fields["measured"]
    profile, after = rows.profile_of(device.info), policy.policy_of(device.info)
    assert {name for name, by in profile.entries.items() if by == entry} == set(entry.fields)
    assert profile.is_measured and after.storage == "buffer"
    # What is not measured is kept, the user's own values in the file too, which may replace theirs.
    assert (after.loop_limit, entry.why["loop_limit"]) == (12345, "a guess")
    assert after.speed == before.speed or not was_measured
    assert "lanes" not in entry.fields and was_measured is not ("speed" in entry.fields)
    rows.entries.cache_clear()


@pytest.mark.driver
def test_users_files_are_not_written_over(few, error_of, tmp_path):
    """What is no row stays, and is found before anything is measured."""
    path = tmp_path / "row.json"
    path.write_text('{"settings": 1}')
    error = error_of(2, "tune", "--runs", "1", "--output", path)
    assert "row.json: a file is there that is not an entry of a driver" in error
    with pytest.raises(InputError, match="not written over"):
        rows.write(str(path), {"lanes": 1})
    assert path.read_text() == '{"settings": 1}'


def test_the_first_entry_of_a_driver(device, few, own):
    """Its speed is made of what was measured, and is kept when it is measured again."""
    device_info = replace(device.info, driver_id=OTHER)
    bench = tune.Bench(device, 1)
    bench.kept = rows.profile_of(device_info)
    entry = tune.tune(bench)
    assert entry["speed"] == {"multiply_adds": 1e9, "bytes": 1e9, "dispatch": 5e-6, "reads": 2e9}
    measured = {"tiles", "shares", "wide_depthwise", "tall_depthwise", "storage", "specialize",
                "ceiling"}
    assert set(entry) == measured | {"match", "speed", "measured", "why"}
    assert set(entry["why"]) == measured
    own("new.json", {**entry, "match": {"driver_id": OTHER}})
    bench.kept = rows.profile_of(device_info)
    assert bench.kept.is_measured and tune.tune(bench)["speed"] == entry["speed"]
