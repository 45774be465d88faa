"""Trained networks on real data: the decisions they are made for, not only their numbers."""

import numpy as np
from support import need_model, relative_l2


def load_with_data(load, name, data):
    """The program and its data, or a skip where VKRT_MODELS does not have them."""
    return load(need_model(f"{name}.pte")), np.load(need_model(f"{name}.{data}.npz"))


def classified(load, name, data):
    """Logits that choose the right classes, and those of PyTorch."""
    program, data = load_with_data(load, name, data)
    logits = np.concatenate([program.run(x[None])[0] for x in data["x"]])
    np.testing.assert_array_equal(logits.argmax(1), data["logits"].argmax(1))
    return logits, data["logits"]


def test_digits(load):
    logits, expected = classified(load, "digit-recognizer", "dataset_100")
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)


def test_photos(load):
    for result, expected in zip(*classified(load, "efficientnet-lite0", "images"), strict=True):
        assert relative_l2(result, expected) < 1e-5


def test_speech(load):
    """The state of the network goes from one chunk to the next through the host."""
    program, data = load_with_data(load, "silero-vad", "stream")
    state = [np.zeros((1, 128), np.float32), np.zeros((1, 128), np.float32)]
    probabilities = []
    for chunk in data["x"]:
        probability, *state = program.run(chunk[None], *state)
        probabilities.append(float(probability[0, 0]))
    np.testing.assert_array_equal(np.array(probabilities) > 0.5, data["prob"] > 0.5)
    np.testing.assert_allclose(probabilities, data["prob"], atol=1e-4)
