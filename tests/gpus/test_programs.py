"""On drivers of GPUs, where nothing computes: programs load, plan, record and submit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dealing import DEPTH, STORAGES
from gpu_drivers import COMMAND, FOLDER, MISSING, TURN, UNUSABLE, all_devices, environment, run_jobs
from gpu_drivers import taken as devices
from host_device import LAYER_BUGS
from hostile_device import FOLDERS
from support import MODELS, find_model

pytestmark = [pytest.mark.skipif(not FOLDER, reason=MISSING), pytest.mark.dealt]

# Every kind of program: layers of each family, halves, 8 bits, states and caches, sizes that vary
PLAIN = ["mlp", "mlp-fp16", "conv_mix", "pools", "superres_small", "unet_small", "lstm_cell",
         "attention", "elementwise", "shapes"]
QUANTIZED = ["quantized_pictures", "quantized_mlp", "quantized_mlp_row"]
STATES = ["buffers", "kept", "kept_attention", "llama", "llama_static"]
DYNAMIC = ["conv-dyn", "attention-dyn", "masked-dyn", "numbers-dyn", "pair-dyn"]
SMALL = [*PLAIN, *QUANTIZED, *STATES, *DYNAMIC]
# In the folders of VKRT_MODELS
LARGE = ["efficientnet-lite0", "realesr-animevideov3", "mobilenet_v2_q8-base", "dwconv-base",
         "digit-recognizer", "silero-vad", "mlp_vk4w-base", "llama_mini_4w-base"]
WAYS = [{"weights": "stream"}, {"memory_budget": "smallest"}, {"weights": "copy"}]


def jobs_of(number: int) -> list[dict]:
    """What a device does: every small program in some storage, some in another way; all of them in
    all storages at full depth, a third of them in a quick run.

    Args:
        number: turns which program gets which storage and way.
    """
    jobs = []
    for i, name in enumerate(SMALL):
        path = str(MODELS / f"{name}.pte")
        if DEPTH == "full":
            jobs += [{"model": path, "storage": storage} for storage in STORAGES]
            jobs += [{"model": path, **way} for way in WAYS]
        elif DEPTH == "all" or (i + number) % 3 == 0:
            jobs.append({"model": path, "storage": STORAGES[(i + number) % 3]})
            if (i + number) % 2 == 0:
                jobs.append({"model": path, **WAYS[(i // 2 + number) % 3]})
    large = LARGE if DEPTH == "full" else [LARGE[number % len(LARGE)]] if DEPTH == "all" else []
    return jobs + [{"model": str(path)} for name in large if (path := find_model(f"{name}.pte"))]


def is_here(layer: str) -> bool:
    """Whether there is a manifest of a layer."""
    return any(layer in path.read_text(encoding="utf-8")
               for folder in FOLDERS for path in Path(folder).glob("*.json"))


def check(device: str, jobs: list[dict], folder, **more: str) -> None:
    """Runs them, and says what is not as it has to be."""
    wrong = []
    for said in run_jobs(device, jobs, folder, **more):
        found = [text for text in said["validation"] if not any(bug in text for bug in LAYER_BUGS)]
        if "error" in said or said["left"] or found or said["planned"] != said["measured"]:
            wrong.append(said)
    assert not wrong, f"{device}: {len(wrong)} of {len(jobs)} programs: {wrong[:5]}"


@pytest.mark.parametrize("device", devices())
def test_programs(device, tmp_path):
    """Every job takes the bytes that were planned, and leaves nothing behind."""
    number = TURN + all_devices().index(device)
    check(device, jobs_of(number), tmp_path)


@pytest.mark.parametrize("device", devices())
def test_programs_are_valid(device, tmp_path):
    """The validation layer, with synchronization validation, has nothing to say."""
    if not is_here("VK_LAYER_KHRONOS_validation"):
        pytest.skip("needs the Khronos validation layer (vulkan-validationlayers)")
    number = TURN + all_devices().index(device)
    step = 1 if DEPTH == "full" else 5
    jobs = [job for i, job in enumerate(jobs_of(number)) if (i + number) % step == 0]
    check(device, [job for job in jobs if "/tests/models/" in job["model"]], tmp_path,
          VKRT_VALIDATION="1")


@pytest.mark.parametrize(("device", "words"), [
    (name, words) for name, words in UNUSABLE.items() if words and name in all_devices()])
def test_devices_of_vulkan_1_0(device, words, tmp_path):
    """They are refused by name, and nobody is asked to install a driver."""
    done = subprocess.run(
        [COMMAND, device, sys.executable, "-m", "vkrt", "info", "--device", "0",
         str(MODELS / "mlp.pte")], check=False, capture_output=True, text=True,
        env=environment(tmp_path), timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "there is no Vulkan device that vkrt can use: " in said and words in said
    assert "vkrt needs 1.1" in said and "install" not in said
