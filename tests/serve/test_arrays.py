"""Networks over HTTP: `/v1/run` and the V2 inference protocol."""

import io
import json
from functools import partial

import numpy as np
import pytest
from serving import Gate, serving_arrays, wait_for
from support import MODELS, calls_of, examples_of, mlp_arrays

import vkrt
from vkrt.serve.arrays import JSON_LENGTH


@pytest.fixture
def server(device):
    with serving_arrays(device, "mlp.pte", body=20_000, waiting=1) as running:
        yield running


close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def names(server):
    _, _, model = server.ask("/v2/models/net")
    return [i["name"] for i in model["inputs"]], [o["name"] for o in model["outputs"]]


def test_run(server):
    x, expected = mlp_arrays()
    (name,), (output,) = names(server)
    for inputs in ([x.tolist()], {name: x.tolist()}):
        status, _, answer = server.ask("/v1/run", {"inputs": inputs})
        assert status == 200
        close(answer["outputs"][output], expected)
    for array in (x, np.asfortranarray(x)):
        status, headers, answer = server.ask("/v1/run", npy(array))
        assert status == 200 and headers["content-type"] == "application/x-npy"
        found = np.load(io.BytesIO(answer))
        assert found.dtype == np.float32
        close(found, expected)


def test_the_protocol(server):
    x, expected = mlp_arrays()
    assert server.ask("/v2")[2]["name"] == "vkrt"
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/net/ready", "/health"):
        assert server.ask(path)[0] == 200
    _, _, model = server.ask("/v2/models/net")
    given, = model["inputs"]
    assert given["datatype"] == "FP32" and given["shape"] == [3, 30]
    data = {**given, "data": x.tolist()}
    for form in (data, {**data, "data": x.ravel().tolist()}):
        status, _, answer = server.ask("/v2/models/net/infer", {"id": "7", "inputs": [form]})
        output, = answer["outputs"]
        assert status == 200 and answer["id"] == "7" and answer["model_name"] == "net"
        assert output["datatype"] == "FP32" and output["shape"] == [3, 10]
        close(np.reshape(output["data"], output["shape"]), expected)


@pytest.mark.parametrize("how", ["output", "request"])
def test_binary_data(server, how):
    """As Triton's clients send it, unless they are told otherwise."""
    x, expected = mlp_arrays()
    (name,), (output,) = names(server)
    wanted = ({"outputs": [{"name": output, "parameters": {"binary_data": True}}]}
              if how == "output" else {"parameters": {"binary_data_output": True}})
    text = json.dumps({**wanted, "inputs": [{
        "name": name, "datatype": "FP32", "shape": [3, 30],
        "parameters": {"binary_data_size": x.nbytes}}]}).encode()
    status, headers, answer = server.ask("/v2/models/net/infer", text + x.tobytes(),
                                         {JSON_LENGTH: str(len(text))})
    length = int(headers[JSON_LENGTH])
    described, = json.loads(answer[:length])["outputs"]
    assert status == 200 and described["parameters"]["binary_data_size"] == len(answer) - length
    close(np.frombuffer(answer[length:], np.float32).reshape(3, 10), expected)
    for wrong in ("-1", "100000", "x"):
        assert server.ask("/v2/models/net/infer", text, {JSON_LENGTH: wrong})[0] == 400
    # The bytes are not there.
    assert server.ask("/v2/models/net/infer", text)[0] == 400


def test_sizes_that_may_be_less(device):
    with serving_arrays(device, "attention-dyn.pte") as server:
        (given,), (output,) = (server.ask("/v2/models/net")[2][k] for k in ("inputs", "outputs"))
        assert -1 in given["shape"] and -1 in output["shape"]
        ((x,), (expected,)), *_ = calls_of("attention-dyn")
        status, _, answer = server.ask("/v1/run", npy(x))
        assert status == 200
        np.testing.assert_allclose(np.load(io.BytesIO(answer)), expected, rtol=1e-4, atol=1e-5)


def test_numbers_that_are_none(server):
    """NaN and infinity pass, as Python reads and writes them."""
    status, _, answer = server.ask("/v1/run", {"inputs": [np.full((3, 30), np.nan).tolist()]})
    assert status == 200 and np.isnan(next(iter(answer["outputs"].values()))).all()


def test_malformed_arrays(server):
    x, _ = mlp_arrays()
    (name,), _ = names(server)
    good = npy(x)
    header = good.index(b"\n") + 1
    claims = good[:header].replace(b"(3, 30)", b"(30000000000, 30000000)")
    for body in (good[:-4], good + b"1234", good[:9], b"\x93NUMPY", npy(x.astype(object)[:1]),
                 npy(x.astype(np.float64)), npy(x[:2]), claims, npy(np.array(["a"])),
                 {"inputs": [x.tolist()] * 2}, {"inputs": {"other": x.tolist()}}, {"inputs": 3}, {},
                 {"inputs": [[[1, 2], [3]]]}, {"inputs": ["text"]}, {"inputs": [None]}):
        status, _, answer = server.ask("/v1/run", body)
        assert status == 400 and answer["error"]["message"], (body, answer)
    form = {"name": name, "datatype": "FP32", "shape": [3, 30], "data": x.tolist()}
    for change in ({"name": "other"}, {"datatype": "FP16"}, {"shape": [3, 31]},
                   {"shape": [-3, -30]}, {"shape": [2, 45]}, {"data": [[1], [2, 3]]},
                   {"data": "text"}, {"shape": ["a"]}, {"data": None},
                   {"parameters": {"binary_data_size": 360}}):
        status, _, answer = server.ask("/v2/models/net/infer", {"inputs": [{**form, **change}]})
        assert status == 400 and isinstance(answer["error"], str), (change, answer)
    for body in ({"inputs": []}, {"inputs": [3]}, {"inputs": [form], "outputs": [{"name": "y"}]}):
        assert server.ask("/v2/models/net/infer", body)[0] == 400
    assert server.ask("/v1/run", b"\x93NUMPY" + bytes(30_000))[0] == 413
    assert server.ask("/v1/run", good)[0] == 200


def test_runs_follow_one_another(server, monkeypatch):
    """Who comes when one runs and one waits is told so; who goes away is not waited for."""
    gate = Gate(server.service.program, monkeypatch)
    body = npy(mlp_arrays()[0])
    request = (f"POST /v1/run HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    running, waiting = (server.connect(request + body) for _ in range(2))
    wait_for(lambda: server.service.turns.counts == (1, 1))
    assert server.ask("/v1/run", body)[0] == 429
    job, = server.service.turns._waiting
    waiting.close()
    wait_for(lambda: job.cancelled)
    gate.open()
    assert running.recv(100).startswith(b"HTTP/1.1 200")
    running.close()
    wait_for(lambda: server.service.turns.counts == (0, 0))
    assert gate.begun == 1 and server.ask("/v1/run", body)[0] == 200


def test_inputs_of_one_value_are_left_out(device):
    with serving_arrays(device, "numbers.pte") as server:
        metadata = server.service.metadata
        free = [info for info in metadata.inputs if not info.fixed]
        inputs = {info.name: np.asarray(info.example()).tolist() for info in free}
        status, _, answer = server.ask("/v1/run", {"inputs": inputs})
        assert status == 200, answer
        with vkrt.load(MODELS / "numbers.pte", device) as program:
            expected = program.run(*examples_of(program))
        for found, value in zip(answer["outputs"].values(), expected, strict=True):
            assert found is value is None or np.allclose(found, value, rtol=1e-6)
        # The protocol has no None.
        model = server.ask("/v2/models/net")[2]
        status, _, answer = server.ask("/v2/models/net/infer", {"inputs": [
            {**given, "data": np.ravel(inputs[given["name"]]).tolist()}
            for given in model["inputs"]]})
        assert status == 200 and len(answer["outputs"]) == len(model["outputs"]) == 5
        assert [o["datatype"] for o in answer["outputs"]] == ["FP32", "FP32", "INT64", "FP64",
                                                              "BOOL"]
