"""Runs a model with ncnn on Vulkan in float32; see timing.py."""

import ncnn
import numpy as np
import timing

FACTS = {"version": ncnn.__version__}


def load(path, threads):
    net = ncnn.Net()
    options = net.opt
    options.num_threads = threads
    options.use_vulkan_compute = True
    for kind in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"):
        if hasattr(options, f"use_{kind}"):
            setattr(options, f"use_{kind}", False)
    if not ncnn.get_gpu_count():
        raise SystemExit("ncnn finds no Vulkan device")
    FACTS["device"] = ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name()
    if net.load_param(path) or net.load_model(path.replace(".param", ".bin")):
        raise SystemExit("ncnn cannot load the model")
    if not net.opt.use_vulkan_compute:
        raise SystemExit("ncnn does not use Vulkan for this model")

    def run(x):
        with net.create_extractor() as extractor:
            extractor.input("in0", ncnn.Mat(x[0]))
            failed, y = extractor.extract("out0")
            if failed:
                raise SystemExit("ncnn cannot run the model")
            return np.array(y)

    return run


timing.measure(load, FACTS)
