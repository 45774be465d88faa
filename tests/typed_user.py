"""A user's file with every public name of vkrt, as `mypy --strict` reads it; it is never run."""

from __future__ import annotations

import asyncio
import sys

import numpy as np

import vkrt
import vkrt.executorch


def on_progress(phase: str, done: int, total: int) -> None:
    print(f"{phase}: {done} of {total} bytes", file=sys.stderr)


def loading(path: str) -> vkrt.Program:
    options = vkrt.LoadOptions(weights="map", memory_budget="300MB")
    print(options.weights, options.budget, options.has_budget)
    vkrt.manual_seed(3)
    needs: vkrt.Requirements = vkrt.required_features(path, weights="auto")
    print(needs.api_version, needs.queue, needs.features, needs.optional_features)
    print(needs.extensions, needs.optional_extensions)
    print(vkrt.verify(path), vkrt.__version__)
    return vkrt.load(path, "llvmpipe", storage="auto", memory_budget="smallest", chunk=1 << 20,
                     data_path=[path + ".ptd"], on_progress=on_progress)


def devices() -> None:
    infos: list[vkrt.DeviceInfo] = vkrt.devices()
    with vkrt.Device.open(infos[0], pipeline_cache="off") as device:
        print(device.info.name, device.info.identity, device.features, device.unified)
        print(device.reads_slowly, device.queue_family, device.upload_family, device.api_version)
        print(device.timestamp_period, device.timestamp_bits, device.pipeline_cache_option)
        print(device.closed, device.process, device.inherited)
        device.check_process()
    adopted = vkrt.Device.adopt(1, 2, 3, 4, 0, features=["timelineSemaphore"], lock=None)
    adopted.close()


def running(program: vkrt.Program) -> float:
    x = np.zeros((1, 3), np.float32)
    metadata: vkrt.MethodMetadata = program.metadata("forward")
    print(metadata.name, metadata.outputs, *(i.name + i.dtype for i in metadata.inputs))
    print(program.method_names, program.constants, program.device.info.name)
    y, = program(x)
    y, = program.run(x, method="forward", out=[np.empty(3, np.float32)], outputs="numpy")
    y, = program.run({"x": x})
    y, = program.run(x=x)
    run: vkrt.Run = program.run_async(x, wait=[vkrt.Semaphore(1)], signal=[vkrt.Semaphore(2, 7)])
    print(run.done(), run.ended, run.copied_bytes, run.result(timeout=1.0))
    run.wait()
    program.run_async(vkrt.DeviceBuffer(1, 64, sizes=(4, 4))).result()
    program.cancel()
    program.release_buffers()
    profile: vkrt.Profile = program.profile(x, repeat=3, clock="auto")
    step: vkrt.ProfileStep = profile.steps[0]
    print(profile.table(), profile.totals(), profile.as_dict(), step.seconds)
    return float(y[0])


def methods(program: vkrt.Program) -> None:
    method: vkrt.Method = program.load_method("forward")
    print(method.execute([1, 2]), method.execute({"x": 1}), method.metadata.inputs)
    print(method.start([1]).result(), method.profile([1]).seconds, method.plan, method.work)
    done: vkrt.Compilation = vkrt.compile("net.pte", "net.vkx", device=[0], shapes=[[(1, 3)]])
    print(done.targets, done.peak_bytes)
    print(method.peak_at([(1, 64), (1,)]), method.largest, method.graph, method.planned,
          method.states, method.shapes)
    method.cancel()
    method.release_buffers()
    state: vkrt.State = method.state
    state.load(state.save())
    with method.new_state() as one:
        one.close()
    method.close()


def states(program: vkrt.Program) -> None:
    with program.new_state() as state:
        kind: vkrt.State = state
        state.load(kind.save())
        state.reset()
        print(state.nbytes, state.method)
    program.load_state(program.save_state())
    program.reset_state("forward")
    state.close()


def memory(program: vkrt.Program) -> None:
    report: vkrt.MemoryReport = program.memory
    phases: list[vkrt.Phase] = report.phases
    print(report.table(), report.weights_table(), report.as_dict(), report.process, phases[0].name)
    print(report.measured_peak == report.planned_peak, report.run_bytes)


def text(program: vkrt.Program, path: str) -> None:
    tokenizer = vkrt.Tokenizer(path)
    sampler = vkrt.Sampler(temperature=0.7, top_k=40, seed=1)
    ids = tokenizer.encode("Once upon a time", special=True)
    tokens = vkrt.generate(program, ids, max_tokens=8, sampler=sampler, ends=tokenizer.ends)
    print(*tokenizer.stream(iter(tokens)), tokenizer.decode(ids))
    print(tokenizer.chat([{"role": "user", "content": "Hello"}]), len(tokenizer.as_json()))


def errors(path: str) -> str:
    try:
        with vkrt.load(path) as program:
            program.close()
    except vkrt.DeviceMemoryError as error:
        return f"{error.asked} {error.heap} {error.budget} {error.in_use} {error.breakdown}"
    except vkrt.PipelineError as error:
        return ", ".join(error.shaders)
    except (vkrt.DeviceLostError, vkrt.ForkedError, vkrt.LoaderError) as error:
        return error.call
    except vkrt.VulkanError as error:
        return f"{error.result} {error.node}"
    except (vkrt.FormatError, vkrt.UnsupportedError, vkrt.InputError, vkrt.StateError,
            vkrt.ClosedError, vkrt.PackageError, vkrt.CancelledError, vkrt.InternalError):
        return "no"
    except vkrt.VkrtError as error:
        return str(error)
    return ""


def executorch() -> str | None:
    vkrt.executorch.register("llvmpipe", storage="auto")
    report = vkrt.executorch.memory()
    return vkrt.executorch.last_error() if report is not None else None


async def waiting(program: vkrt.Program) -> list[object]:
    return await program.run_async(1)


def main() -> None:
    with loading(sys.argv[1]) as program:
        asyncio.run(waiting(program))
        print(running(program))
