"""Shader modules, layouts and pipelines, made one by one and in batches, and what is refused."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from alarms import Interrupted, on_alarm
from core_shaders import shader
from vkrt.vk.pipeline_batch import PipelineBatch

from vkrt.errors import ForkedError, UnsupportedError, VulkanError
from vkrt.vk import live_objects
from vkrt.vk.pipeline import DescriptorLayout, ShaderModule

pytestmark = pytest.mark.driver
STORAGE_BUFFER = 7


@pytest.fixture
def parts(device):
    """A layout and a shader module."""
    layout = DescriptorLayout(device, [STORAGE_BUFFER, STORAGE_BUFFER], 8)
    module = ShaderModule(device, shader("linear"))
    yield layout, module
    module.close()
    layout.close()


def batch_of(device, parts, count):
    """A batch of pipelines that differ in a constant."""
    batch = PipelineBatch(device, count)
    for factor in range(count):
        batch.add(*parts, [(100, 64), (0, factor)])
    return batch


def test_shader_beyond_the_device_never_reaches_the_driver(device):
    if "float16" in device.features:
        ShaderModule(device, shader("half")).close()
    else:
        with pytest.raises(UnsupportedError, match="Float16"):
            ShaderModule(device, shader("half"))


@pytest.mark.parametrize("damage", [
    lambda spirv: b"", lambda spirv: b"abc", lambda spirv: bytes(64), lambda spirv: spirv[:16],
    lambda spirv: spirv[:-1]])
def test_not_a_module(device, damage):
    spirv = damage(shader("linear"))
    before = live_objects()
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        ShaderModule(device, spirv)
    assert live_objects() == before


@pytest.mark.parametrize("own", [False, True])
def test_batch(device, parts, own):
    """Made by threads of the batch or by others; core/test_core_pipelines.py runs some."""
    batch = batch_of(device, parts, 5)
    with pytest.raises(IndexError, match="5"):
        batch.add(*parts)
    if own:
        batch.start(3)
        batch.work_here()
    else:
        with ThreadPoolExecutor(3) as threads:
            for future in [threads.submit(batch.work) for _ in range(3)]:
                future.result()
    assert batch.left == 0
    made = batch.take()
    assert len(made) == 5 and batch.size == 0
    for pipeline in made:
        assert pipeline.layout is parts[0]
        pipeline.close()


def test_batch_that_is_dropped(device, parts):
    """What was made and not taken is destroyed; what was stopped is an error."""
    before = live_objects()
    dropped = PipelineBatch(device, 1)
    dropped.add(*parts)
    dropped.work()
    dropped.close()
    assert dropped.take() == []
    stopped = PipelineBatch(device, 2)
    stopped.add(*parts)
    stopped.stop()
    stopped.work()
    with pytest.raises(VulkanError, match="vkCreateComputePipelines"):
        stopped.take()
    assert live_objects() == before
    with pytest.raises(IndexError):
        stopped.add(*parts)


def test_batch_hears_signals(device, parts):
    """Between two pipelines, on the thread that waits for them; what is left can be dropped."""
    def interrupt(*_):
        raise Interrupted

    before = live_objects()
    batch = batch_of(device, parts, 3000)
    batch.start(1)
    with on_alarm(interrupt), ThreadPoolExecutor(1) as threads:
        helper = threads.submit(batch.work)
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            batch.work_here()
        batch.stop()
        batch.close()  # while the helper is perhaps still on its way out
        helper.result()
    assert live_objects() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_batch_in_a_forked_child(device, parts):
    """The child has none of the threads: it is told so, and waits for nothing."""
    batch = batch_of(device, parts, 200)
    batch.start(3)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        status = 1
        try:
            with pytest.raises(ForkedError):
                batch.work_here()
            batch.stop()
            batch.close()
            status = 0
        finally:
            os._exit(status)
    batch.work_here()
    made = batch.take()
    assert len(made) == 200
    for pipeline in made:
        pipeline.close()
    assert os.waitpid(child, 0)[1] == 0
