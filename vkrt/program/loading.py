"""`vkrt.load`: its options, in one place with what they mean."""

from __future__ import annotations

import os
from typing import Any

from vkrt.plan.options import LoadOptions
from vkrt.program.program import Program
from vkrt.report.stopwatch import OnProgress
from vkrt.work.option_values import DEFAULT_CHUNK


def load(source: Any, device: Any = None, *, storage: str = "auto", weights: str = "auto",
         memory_budget: int | str | None = None, stream_lookahead: int | None = None,
         prefetch: str = "auto", keep_cached: bool | None = None,
         winograd: str = "auto", prefer: str = "balanced", cache: str = "float",
         fusions: str = "on", specialize: str = "few",
         pipeline_cache: str | os.PathLike[str] = "auto",
         plan_cache: str | os.PathLike[str] = "auto", order: str = "lazy",
         chunk: int = DEFAULT_CHUNK, data_path: Any = None,
         on_progress: OnProgress | None = None) -> Program:
    """Loads a program onto a device.

    Args:
        source: path of a `.pte` file, or its bytes; or path of a compiled program (`vkrt.compile`),
            in which the options that decide what is loaded are fixed.
        device: None (the best one), an index or part of a name (see `vkrt.devices()`), or an
            open `vkrt.Device`, which stays the caller's.
        storage: how tensors are stored: "texel", "buffer", "texture3d", or "auto" for the driver's
            own default.
        weights: how weights get from the file to the kernels. "auto" maps the weights that can be
            mapped, if the device shares the host's memory: the kernels then read the file's own
            bytes. The driver must be known to read these, or a probe must show it (once per version
            of the driver, in a device of its own). Other weights are copied once, in as few steps
            as the device allows. "map" maps with any driver, known or not, and fails if no weight
            can be mapped; a driver that cannot read the mapping loses the device. "direct" copies
            everything, without staging where the host sees the device's memory; "copy" copies
            everything through staging; "stream" is "direct" with all weights loaded anew in every
            run, unless a budget leaves room for them.
        memory_budget: the maximum of bytes on the device, such as 300MB, or "smallest"; weights
            that do not fit are streamed (default: no maximum). A number or a text; staging counts,
            too. Streamed weights pass through a pool in every run. If that is not enough, nodes are
            done in parts as with `prefer="memory"`, and so are layers with large weights.
        stream_lookahead: how many sync points ahead of its use a streamed weight begins to load, 0
            for no overlap (default: what the plan finds best).
        prefetch: how the file is read: "pread", "willneed", "readahead", "none" (by page faults)
            or "auto". Which is the fastest depends on the disk.
        keep_cached: whether the system's cache may keep what was copied from the file (default:
            only where the file is small beside the machine's memory).
        winograd: whether 3x3 convolutions run in Winograd's transformed domain, with a quarter of
            the multiplications: "auto" where that is faster on the driver and the scratch memory
            fits into unused bytes of the arena, so that the peak does not grow; "always" where that
            is faster on the driver, even if the arena grows; "off" nowhere.
        prefer: whether activations take as little memory as possible, in more and smaller
            dispatches ("memory"), or more where that is faster ("speed"). With "memory" nodes are
            done in parts (strips of rows or slices of channels) wherever that saves memory; with
            "balanced" only where that is expected to cost hardly any time, or where the device's
            limits or the budget allow nothing else. The last bits of results may differ, because
            sums have another order or other kernels are chosen. With "speed" the arena may become
            twice as large for `winograd="auto"`.
        cache: whether caches of keys and values are kept as the program has them, or in 8 bits with
            a scale for each head of a row ("float", "int8"). In 8 bits, a head of D elements takes
            4 + D bytes; each element is off by at most 1/510 of the range of the head's elements
            and 0. This is for buffers [batch, rows, heads, D] that begin with zeros, and that only
            the operators `sdpa_with_kv_cache`, `update_cache`, `update_cache_with_indices`,
            `custom_sdpa` use. Other buffers stay as they are; `vkrt info --cache int8` says how
            many are in 8 bits. Saved states have the same bytes, see `Program.save_state`.
        fusions: whether kernels do what follows them too, such as activations: "on", "off", or
            names of passes to leave out, each with "no-" in front and commas between, such as
            "no-fuse_padding" (`vkrt info --passes` lists them). Results differ by rounding, as
            sums have another order and factors are multiplied elsewhere: those of the test models
            by a relative L2 error of 4e-7 at most in fp32, and of 8e-4 in half precision, where
            fused kernels keep more digits. 8-bit numbers that lie between two steps may be the
            other step.
        specialize: which sizes are compiled into the kernels: the few that the driver's profile
            names, all of them or none ("few", "all", "none"). The other sizes are passed to a
            kernel when it runs, and layers that differ only in those share its pipeline. A
            driver may round otherwise where it knows a size: the results of two test models
            differ, by a relative L2 error of 1e-7.
        pipeline_cache: the file that keeps the driver's compiled pipelines, "off", or "auto" for
            one in the user's cache folder (if the driver has something to keep;
            `VKRT_PIPELINE_CACHE` replaces "auto"). A file that is damaged, or of another device or
            driver, is ignored and written anew. A `vkrt.Device` that is passed keeps the file that
            it was opened with.
        plan_cache: the folder that keeps what was worked out for a program, "off", or "auto" for
            the one in the user's cache folder (`VKRT_PLAN_CACHE` replaces this folder). A program
            then loads faster from its second load on: only its weights are read. With dynamic
            shapes the same holds for the first run at every shape that it ran at lately. A plan
            that is damaged, or of another program, device or vkrt, is ignored. A folder that others
            can write to is not used. `Program.memory.notes` says why no plan is kept, where none
            is.
        order: whether the arena is allocated after the weights are packed, or before: "lazy" (the
            least memory) or "eager" (a lack of memory shows before weights are read).
        chunk: the maximum size of the staging buffer, such as 8MiB, as a number of bytes; the
            buffer is smaller where that lowers the peak.
        data_path: constants that were exported separately from the program: the path of a `.ptd`
            file (or its bytes), or several of them. Weights in them are treated as the program's
            own. Their bytes are not compared with their names (hashes); `vkrt.verify` does that.
        on_progress: called with the name of a part of the load, the bytes of it that are done, and
            all its bytes. When a part is done the two numbers are equal (0 for a part without
            bytes); "weights" is also reported before that. What it raises ends the load.

    Returns:
        The program, to be closed (`with vkrt.load(..) as program:`).

    Raises:
        OSError: a file cannot be read.
        FormatError: a file has a byte that the format does not allow, or a constant is in no data
            file (the message names it), or the data files disagree about a constant.
        InputError: an option is none of those allowed, or the budget is too small (the message
            says which is the smallest possible).
        UnsupportedError: the program needs something that vkrt or the device does not have.
        VulkanError: LoaderError without a driver, DeviceMemoryError when memory runs out, ...
    """
    return Program(source, device, LoadOptions(
        storage=storage, order=order, chunk=chunk, weights=weights, memory_budget=memory_budget,
        stream_lookahead=stream_lookahead, prefetch=prefetch, keep_cached=keep_cached,
        winograd=winograd, prefer=prefer, cache=cache, fusions=fusions, specialize=specialize,
        pipeline_cache=pipeline_cache, plan_cache=plan_cache), data_path, on_progress)
