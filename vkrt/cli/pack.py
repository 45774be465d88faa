"""`vkrt pack`: saves packed weights beside a program."""

from __future__ import annotations

import time
from typing import Any

from vkrt.packer import check, pack


def describe(options: Any, device: Any) -> tuple[dict[str, Any], str]:
    """Does what the command says; the result for JSON, and as lines of text."""
    if options.check:
        name = check(options.model, options.output, options.data)
        return {"output": name, "good": True}, f"{name}: every byte is as it was saved"
    start = time.perf_counter()
    done = pack(options.model, options.output, device=device, storage=options.storage,
                data_path=options.data)
    seconds = time.perf_counter() - start
    data = {"file": options.model, "output": done.output, "device": done.device,
            "storage": done.storage, "weights": done.weights, "bytes": done.nbytes,
            "file_bytes": done.file_bytes, "seconds": round(seconds, 3), "skipped": done.skipped}
    lines = [f"method {method} is left out: {why}" for method, why in done.skipped.items()]
    where = f"on {done.device}, storage {done.storage}"
    if done.output is None:
        lines.append(f"nothing to pack {where}: every weight is read as {options.model} has it")
    else:
        lines.append(f"wrote {done.output}: {done.weights} weights, {done.nbytes / 1e6:.2f} MB, "
                     f"packed in {seconds:.2f} s for loads {where}")
    return data, "\n".join(lines)
