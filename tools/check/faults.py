#!/usr/bin/env python3
"""Takes fixes of vkrt out, one by one, and says which test notices.

    tools/check/faults.py                  all of them, on the driver of VK_DRIVER_FILES
    tools/check/faults.py flush timeline   those with one of these words in their names

A fix is taken out of the working tree (which is rebuilt) and put back, whatever happens; its files
may not have changes that are not committed. Prints a row of a table for each, as in
tests/hostile/README.md, and exits with 1 if a fault passed. Some of them take minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
PROFILES = "tests/hostile/test_profiles.py"
FAILING = "tests/hostile/test_calls_that_fail.py"
HOSTS = "tests/capi/test_capi_hosts.py"

# What is wrong, [(file, text, what stands there then)], a profile or "", pytest's arguments
FAULTS: list[tuple[str, list[tuple[str, str, str]], str, str]] = [
    ("pages of files are imported without a probe",
     [("vkrt/runtime/mapping.py", "if reads_files(self._device, source):", "if True:")],
     "", f"{PROFILES} -k losing"),
    ("nothing ends a command that does not hear of Ctrl-C",
     [("vkrt/cli/__init__.py", "        end_after_interrupt()", "        pass")],
     "", "tests/test_cli_interrupts.py -k get_out"),
    ("runs that change a state are divided on CPU drivers",
     [("vkrt/compiler/planner.py", "None if self.finishes_states and work.states else ", "")],
     "", "tests/test_cli_interrupts.py -k whole"),
    ("an output that cannot be written leaves a file",
     [("vkrt/files/replaceable.py", "os.unlink(temporary)", "pass")],
     "", "tests/test_cli_files.py -k full_disk"),
    ("no flush behind a host kernel",
     [("vkrt/core/host_kernel.pyx", "if flush_range(handles, &array.range, error):", "if False:")],
     "", f"{PROFILES} -k mali"),
    ("no invalidation before a host kernel",
     [("vkrt/core/host_kernel.pyx",
       "if invalidate_range(handles, &handles.records.host_array[i].range, error):",
       "if False:")],
     "", f"{PROFILES} -k mali"),
    ("what a host kernel writes is not invalidated before, so that stale neighbours in its atoms "
     "are flushed",
     [("vkrt/core/host_kernel.pyx",
       "\n            or invalidate_arrays(handles, &kernel.writes, error)", "")],
     "", "tests/test_incoherent.py -k neighbours"),
    ("no flush of inputs",
     [("vkrt/core/handles.pyx", "    return flush_block(block, offset, part.nbytes, error)",
       "    return VKRT_OK")], "", f"{PROFILES} -k mali"),
    ("no invalidation of outputs",
     [("vkrt/core/handles.pyx", "    if invalidate_block(block, offset, part.nbytes, error):",
       "    if False:")],
     "", f"{PROFILES} -k mali"),
    ("no flush of weights that the host writes",
     [("vkrt/core/weights.pyx",
       "if flush_block(buffer.memory.block, buffer.memory.offset, buffer.size, error):",
       "if False:")],
     "", f"{PROFILES} -k mali"),
    ("no flush of streamed weights",
     [("vkrt/core/uploads.pyx",
       "return flush_block(item.target.memory.block, item.target.memory.offset, item.target.size, "
       "error)", "return VKRT_OK")],
     "", f"{PROFILES} -k mali"),
    ("no image's layout changes",
     [("vkrt/plan/barriers.py", "    return result\n\n\ndef _first_uses",
       "    return {}\n\n\ndef _first_uses")], "", f"{PROFILES} -k mali"),
    ("an image's layout does not change where that falls on a copy of a buffer",
     [("vkrt/plan/commands.py", "self.transitions.get(number, ()))",
       "self.transitions.get(number, ()) if isinstance(step, Dispatch) else ())")],
     "", f"{PROFILES} -k layouts"),
    ("a transfer without the barrier before it",
     [("vkrt/plan/barriers.py", "        result.append(hazard)",
       "        result.append(hazard and isinstance(step, Dispatch))")],
     "", f"{PROFILES} -k amd"),
    ("a submission that begins with a transfer waits in the compute stage alone",
     [("vkrt/plan/commands.py", "stages |= flags.TRANSFER_STAGE",
       "stages |= flags.COMPUTE_STAGE")],
     "", f"{PROFILES} -k amd"),
    ("a submission does not wait for those before it",
     [("vkrt/plan/commands.py", "        if stages:\n",
       "        if stages and first in self.transitions:\n")], "", f"{PROFILES} -k amd"),
    ("a kernel with 5 storage buffers",
     [("shaders/shape/join.comp", "#if !defined(STORAGE_BUFFER)", "#if 1"),
      ("vkrt/ops/concat.py", "JOINED_BUFFERS = 4, 3", "JOINED_BUFFERS = 4, 4")],
     "minimum", "tests/ops/test_ops.py -m driver -k cat"),
    ("a kernel with 5 storage buffers that is not refused",
     [("shaders/shape/join.comp", "#if !defined(STORAGE_BUFFER)", "#if 1"),
      ("vkrt/ops/concat.py", "JOINED_BUFFERS = 4, 3", "JOINED_BUFFERS = 4, 4"),
      ("vkrt/executable/formats.py", "if count > most:", "if False:")],
     "minimum", "tests/ops/test_ops.py -m driver -k cat"),
    ("kernels with too many storage buffers are not refused",
     [("vkrt/executable/formats.py", "if count > most:", "if False:")], "", "tests/test_limits.py"),
    ("a submission does not wait for the semaphore of the copies of its weights",
     [("vkrt/core/semaphore.pyx", "&waits if before != NULL else NULL", "NULL")],
     "", f"{PROFILES} -k amd"),
    ("device-local memory without any other in its place",
     [("vkrt/core/memory_types.pyx", "required=0,", "required=LOCAL,")], "", f"{PROFILES} -k apu"),
    ("a device whose memory the host reads past its cache counts as a card",
     [("vkrt/core/memory_types.pyx", "has_type(memory, LOCAL | VISIBLE)",
       "has_type(memory, LOCAL | VISIBLE | CACHED)")], "", f"{PROFILES} -k uncached"),
    ("the largest allocation is not looked at when weights are gathered in blocks",
     [("vkrt/compiler/planner.py", 'device.info.limits["maxMemoryAllocationSize"]', "1 << 62")],
     "", f"{PROFILES} -k blocks"),
    ("what needs a block larger than the device allocates is not refused",
     [("vkrt/plan/plan.py", "if nbytes > max_block_bytes:", "if False:")],
     "", f"{PROFILES} -k blocks"),
    ("timestamps' bits of the first family",
     [("vkrt/core/device.pyx", "timestamp_bits(physical, family)",
       "timestamp_bits(physical, 0)")],
     "", "tests/vk/test_vk_device.py -k timestamps"),
    ("the driver rounds halves",
     [("shaders/elementwise/unary.comp", '#include "params.glsl"',
       '#define pack_f16(v) uvec2(packHalf2x16((v).xy), packHalf2x16((v).zw))\n'
       '#include "params.glsl"')], "minimum", "tests/ops/test_ops.py -m driver -k exp"),
    ("elements beyond 32 bits",
     [("vkrt/work/target.py", "MAX_ELEMENTS = (1 << 31) - 1", "MAX_ELEMENTS = (1 << 62) - 1")],
     "", "tests/plan/test_target.py"),
    ("texel views larger than the device's",
     [("vkrt/lowering/emission.py", 'if self.storage == "texel" and any(', "if False and any(")],
     "", f"{PROFILES} -k beyond"),
    ("the pool's requirements are those of buffers of one queue",
     [("vkrt/core/handles.pyx", "storage.role == ROLE_WEIGHT, &needs", "False, &needs")],
     "", f"{PROFILES} -k amd"),
    ("timeline semaphores are used where there are none",
     [("vkrt/core/semaphore.pyx", "if not has_feature(", "if False and not has_feature(")],
     "", f"{PROFILES} -k uncached"),
    ("caches are read whoever can write them",
     [("vkrt/core/private_file.pyx", "and not status.others_write):", "and True):")],
     "", "tests/vk/test_vk_private_file.py"),
    ("users' files are written over",
     [("vkrt/files/replaceable.py", "return not head or is_such(head)", "return True")],
     "", "tests/test_cli.py -k users_files"),
    ("a plan is good for another build of the extension modules",
     [("vkrt/compiler/plan_cache.py", "yield path, status.st_size, status.st_mtime_ns\n    folders",
       "folders")],
     "", "tests/test_cached_plans.py -k extension"),
    ("plans at further shapes are not compared with the weights of the load",
     [("vkrt/compiler/shape_files.py", "executable.weights == _in_place(mine.weights)", "True")],
     "", "tests/test_shape_files.py -k something_else"),
    ("a plan's storages are not compared with their blocks",
     [("vkrt/core/check.pyx", "<= block.nbytes - place.offset:", "<= place.nbytes:")],
     "", "tests/executable/test_executable.py -k places"),
    ("a binding may reach beyond its storage",
     [("vkrt/core/check.pyx", "not 0 <= part.nbytes <= nbytes - part.offset", "False")],
     "", "tests/executable/test_executable.py -k cannot_be"),
    ("rows of a flat file are read from anywhere",
     [("vkrt/core/flat.pyx", "first != walk.done[kind.table] or", "")],
     "", "tests/executable/test_flat.py -k every_word"),
    ("a weight may be packed beyond its memory",
     [("vkrt/core/pieces.pyx", "if nbytes > room:", "if False:")],
     "", "tests/compiled/test_transfers.py"),
    ("a compiled program runs where the driver ends its loops",
     [("vkrt/core/fit.pyx", "if f.executable.loops > f.limits.max_loops:", "if False:")],
     "", "tests/compiled -k loops"),
    ("a compiled program keeps the types of memory of another device",
     [("vkrt/runtime/fit.py", "block._replace(type_bits=found)", "block")],
     "", "tests/compiled -k types_of_memory"),
    ("shaders of another build run in a compiled program",
     [("vkrt/compiled/program.py", "            self._check_shaders(target, found)\n", "")],
     "", "tests/compiled -k another_build"),
    ("a file may call a larger storage a shared weight",
     [("vkrt/core/check_shared.pyx", "sizeof(StorageRow))", "0)")],
     "", "tests/compiled/test_shared.py -k cannot_be"),
    ("every method brings the weights that it shares with others",
     [("vkrt/core/shared_weights.pyx", "found != NULL and found.row != row:", "found != NULL:")],
     "", "tests/capi/test_compiled_calls.py -k several_methods"),
    ("what is allocated before anything is packed has to be allocated again",
     [("vkrt/core/check_weights.pyx", "if not weights.is_eager and not", "if not")],
     "", "tests/compiled/test_shared.py -k bits_and_bytes"),
    ("nobody asks whether buffers can have imported memory",
     [("vkrt/core/mapping.pyx", "if not maps_files and not is_importable(device, BUFFER_USAGE):",
       "if False:")],
     "", f"{PROFILES} -k denies"),
    ("imported memory may be less than a buffer needs",
     [("vkrt/core/imported.pyx", "if buffer.memory.required.size > buffer.size:", "if False:")],
     "", f"{PROFILES} -k less_memory"),
    ("every driver has lavapipe's limit of loops",
     [("vkrt/device/drivers/default.json", '"loop_limit": null', '"loop_limit": 60000')],
     "", "tests/test_tuning.py"),
    ("a kernel that the driver does not compile ends the load",
     [("vkrt/method/method.py", "else with_smaller(device, load)", "else load()")],
     "", "tests/test_refusals.py -k smaller_kernels"),
    ("a pipeline that cannot be created does not name its shader",
     [("vkrt/runtime/pipelines.pyx", "    if not kernels:\n        return error",
       "    return error")],
     "", "tests/test_refusals.py -k nothing_smaller"),
    ("products of words have no products of bytes in their place",
     [("vkrt/ops/epilogue_q8.py", 'if least in cx.refused_tiles(shader, words, "i32_i8"):',
       "if False:")], "", "tests/test_refusals.py -k next_smaller"),
    ("kernels whose 8 lanes hand weights round run on smaller subgroups",
     [("vkrt/device/policy.py", 'limits["subgroupSize"] < LANES', "False")],
     "", "tests/ops/test_shuffle.py -k choice"),
    ("a cached plan whose kernels do not compile ends the load",
     [("vkrt/program/program.py", "if frozenset(device.refused).issuperset(error.shaders):",
       "if True:")],
     "", "tests/test_refusals.py -k cached_plan"),
    ("what is refused is not kept for other processes",
     [("vkrt/runtime/refusals.py", "if len(content) <= MAX_BYTES and put(path, content):",
       "if False:")], "", "tests/test_refusals.py -k smaller_kernels"),
    ("memory that is given back makes a part of the process less than nothing",
     [("vkrt/report/process.py", "{name: max(nbytes, 0) for name, nbytes in known.items()}",
       "known")], "", "tests/test_process_memory.py -k used_again"),
    ("property tests draw other examples in every run",
     [("tests/properties.py", "derandomize=True", "derandomize=False")],
     "", "tests/test_properties.py"),
    ("a method's own plan is forgotten with its instance",
     [("vkrt/method/executables.py", "if shape == self.shape and (", "if False and (")],
     "", "tests/test_lru_cache.py"),
    ("instances over buffers take the place of others",
     [("vkrt/method/instances.py", "return self._over_buffers if buffers else self._over_arrays",
       "return self._over_buffers")], "", "tests/test_lru_cache.py"),
    ("each program that loads makes a cache of pipelines",
     [("vkrt/core/pipeline_cache.pyx", "made = (device.pipeline_cache == VK_NULL_HANDLE and ",
      "made = (")],
     "", "tests/test_pipelines.py -k one_cache"),
    ("semaphores of a closed device are destroyed at once",
     [("vkrt/core/semaphore.pyx", "if device.calls.inherited:",
       "if device.calls.inherited or device.closed:")],
     "", "tests/test_host_lock.py -k whoever"),
    ("two threads make the graph of a method",
     [("vkrt/method/executables.py", "with self._whole_lock:", "if True:")],
     "", "tests/test_threads.py -k graph"),
    ("an input in bytes of an output is used in place",
     [("vkrt/core/external_plan.pyx", "and not overlaps_any(&tensor, search.changed,",
       "and not overlaps_any(&tensor, search.changed, 0 *")],
     "", "tests/test_external_buffers.py -k one_buffer"),
    ("outputs that share bytes are taken",
     [("vkrt/core/external_plan.pyx", "if overlaps(search.tensors + i, search.tensors + k):",
       "if False:")],
     "", "tests/plan/test_external_use.py -k refused"),
    ("nothing is declared aliased",
     [("shaders/common/tensor.glsl", "#define ALIASED spirv_decorate(20)", "#define ALIASED")],
     "", "tests/ops/test_coverage.py -k aliased"),
    ("a result goes over what its kernel reads elsewhere",
     [("vkrt/lowering/placing.py",
       "all(other.storage is not operand.storage for other in read_elsewhere)",
       "True")], "", "tests/ops/test_in_place.py"),
    ("rows of no elements lie 0 apart",
     [("vkrt/ops/indexing.py", "(strides[dims[-1]] if rest else 1) or 1",
       "strides[dims[-1]] if rest else 1")], "", "tests/ops/test_empty_any.py"),
    ("an input of size 1 is repeated",
     [("vkrt/dynamic/resolve.py", "self._check_alike(node, args, found[0])", "pass")],
     "", "tests/ops/test_resolving.py"),
    ("a position beyond a cache is taken",
     [("vkrt/method/instances.py", "if not limit.low <= value <= limit.high:", "if False:")],
     "", "tests/test_ids.py"),
    ("indices by which elements are scattered are not checked",
     [("vkrt/ops/scatter.py",
       'dtypes=FIRST,\n    indices=indices_along)\ndef _scatter_reduce(',
       'dtypes=FIRST)\ndef _scatter_reduce(')],
     "", "tests/ops/test_index_limits.py"),
    ("an input of size 1 is repeated by a choice of elements",
     [("vkrt/ops/elementwise.py", 'broadcasts="condition self other"', 'broadcasts=""')],
     "", "tests/ops/test_resolving.py"),
    ("a convolution of one channel multiplies what lies beside its window by zero",
     [("shaders/conv/conv2d_single.comp", "v = mask_padding(v, VALID(k, kernel_x));", "")],
     "", "tests/ops/test_spreading.py -k texel"),
    ("an index beyond a tensor is taken",
     [("vkrt/method/instances.py", "if low < indices.low or high > indices.high:", "if False:")],
     "", "tests/test_ids.py"),
    ("a streaming thread ends where the device cannot be let go",
     [("vkrt/core/reload_thread.pyx", "streamer.stranded = (streamer.uploader.host_signaled",
       "streamer.stranded = (False and streamer.uploader.host_signaled")],
     "", f"{FAILING} -k stream"),
    ("a device that cannot be let go is waited for without an end",
     [("vkrt/core/streamer.pyx", "failures[0] < STRANDED_WAITS", "failures[0] >= 0")],
     "", f"{FAILING} -k stream"),
    ("a signal that has failed counts as given",
     [("vkrt/core/reload_thread.pyx",
       "    if raise_timeline(&streamer.uploader.arrivals, value, error):\n"
       "        return error.status\n    streamer.last_value = value",
       "    streamer.last_value = value\n"
       "    if raise_timeline(&streamer.uploader.arrivals, value, error):\n"
       "        return error.status")],
     "", f"{FAILING} -k stream"),
    ("a wait for a fence that fails is taken for the device's end",
     [("vkrt/core/fence.pyx",
       'check_wait(fence.device, result, &failures, b"vkWaitForFences", error)',
       'check_result(result, b"vkWaitForFences", error)')], "", f"{FAILING} -k run"),
    ("a wait for a semaphore that fails is taken for the device's end",
     [("vkrt/core/semaphore.pyx",
       'check_wait(device, result, &failures, b"vkWaitSemaphores", error)',
       'check_result(result, b"vkWaitSemaphores", error)')], "", f"{FAILING} -k stream"),
    ("what the device has without a fence is released where no fence can be submitted",
     [("vkrt/core/execution.pyx", "        give_up(execution.device, &error)", "        pass")],
     "", f"{FAILING} -k no_fence"),
    ("a plan is kept that was made while there was no memory for an import",
     [("vkrt/method/method.py", "if self._loaded.mapper.lacked_memory else", "if False else")],
     "", f"{FAILING} -k want_of_memory"),
    ("an error of the C library that cannot be described is VKRT_OK",
     [("vkrt/capi/c_values.pyx", "    failure.code = VKRT_ERROR_INTERNAL\n",
       "    failure.code = VKRT_OK\n")], "", f"{HOSTS} -k described"),
    ("a Python that was ended, and another one that was started, are one",
     [("vkrt/capi/python.c", "__atomic_load_n(&ended, __ATOMIC_ACQUIRE) || ", "")],
     "", f"{HOSTS} -k ends_python"),
    ("the C library is unloaded",
     [("vkrt/capi/meson.build", "'-Wl,-z,nodelete', ", "")],
     "", f"{HOSTS} -k opened_again"),
    ("a wait forgets a run that was submitted meanwhile",
     [("vkrt/capi/handles.py", "        run.result()\n", "        run.result()\n        "
       "runs.clear()\n")], "", "tests/capi/test_capi_runs.py"),
    ("what was measured on one version of a driver is for all of them",
     [("vkrt/device/rows.py", 'if "from" in match or "below" in match:', "if False:")],
     "", "tests/test_tuning.py -k versions"),
    ("general entries of drivers override exact ones",
     [("vkrt/device/rows.py", "name in self.match for", "name not in self.match for")],
     "", "tests/test_tuning.py -k add_up"),
    ("a lavapipe gives groups of samples away that no other run takes",
     [("tests/ops/test_ops.py", "    rest = everything | {", "    rest = everything or {")],
     "", "tests/ops/test_dealing.py -k kernel"),
    ("a server uses a state again that a failed run has left half changed",
     [("vkrt/serve/conversations.py", "                with suppress(VkrtError):\n",
       "                if False:\n")], "", "tests/serve/test_requests.py -k run_that"),
    ("a server goes on for a client that has gone",
     [("vkrt/serve/service.py", "        self._job.cancelled = True", "        pass")], "",
     "tests/serve/test_requests.py -k goes_away"),
    ("a server takes a state that has read nothing of a prompt before one that has read it",
     [("vkrt/serve/conversations.py", "        best = max(self._free, key=lambda session: ",
       "        best = min(self._free, key=lambda session: ")], "",
     "tests/serve/test_openai.py -k earlier"),
    ("a saved session is written where the old one is",
     [("vkrt/text/saved.py", "with replacing(path, MODE) as file:",
       "with open(path, \"wb\") as file:")],
     "", "tests/test_generate.py -k stays"),
]


def build() -> None:
    """Brings the build up to date."""
    done = subprocess.run([BIN / "ninja", "-C", ROOT / "build" / "venv"], capture_output=True,
                          text=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    if done.returncode:
        raise SystemExit(f"faults: {done.stdout[-2000:]}")


def noticed_by(profile: str, arguments: str) -> str:
    """The first test that fails and what it says, or ""."""
    environment = {**os.environ, **({"VKRT_TEST_PROFILE": profile} if profile else {})}
    done = subprocess.run([BIN / "python", "-m", "pytest", "-n", "0", "-q", "-x", "-vv",
                           *arguments.split()],
                          cwd=ROOT, env=environment, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    if done.returncode == 0:
        return ""
    failed = re.search(r"^FAILED (\S+)", printed, re.M)
    said = [match[0] for match in re.finditer(r"hostile: [^'\"\n]*", printed)
            if "..." not in match[0]]
    lines = [line[1:].strip() for line in printed.splitlines() if line.startswith("E ")]
    said = said or [line for line in lines if re.search(r"Error: |extra item", line)] or lines
    name = failed[1] if failed else f"pytest's exit code {done.returncode}"
    return f"`{name}` | {max(said, key=len, default='')[:200]}"


def main() -> int:
    """Prints the table; returns the exit code."""
    chosen = [fault for fault in FAULTS
              if not sys.argv[1:] or any(word in fault[0] for word in sys.argv[1:])]
    files = {file for _, changes, _, _ in chosen for file, _, _ in changes}
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *files], cwd=ROOT).returncode:
        raise SystemExit("faults: commit the changes of these files first")
    passed = 0
    for name, changes, profile, arguments in chosen:
        before = {file: (ROOT / file).read_text() for file, _, _ in changes}
        try:
            for file, old, new in changes:
                if old not in before[file]:
                    raise SystemExit(f"faults: {file} has no {old!r} any more")
                (ROOT / file).write_text(before[file].replace(old, new))
            build()
            found = noticed_by(profile, arguments)
        finally:
            for file, text in before.items():
                (ROOT / file).write_text(text)
        passed += not found
        print(f"| {name} | {profile or '-'} | {found or 'NOT NOTICED | -'} |", flush=True)
    build()
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
