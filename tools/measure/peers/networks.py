"""The networks that are compared, in plain PyTorch and with random weights.

Written out so that nothing has to be installed beside PyTorch. They have the layers, the widths
and the sizes of the published networks; attention is written as matrix products and a softmax,
which every runtime here knows.
"""

import sys
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "export"))

from exporting import SEED  # noqa: E402
from zoo import Vit, calibrate, randomize  # noqa: E402

CLASSES = 1000


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=None):
    """A convolution that keeps the size (but for its stride), its batch norm and activation."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Squeeze(nn.Module):
    """Scales every channel by a number from 0 to 1, made of the means of all channels."""

    def __init__(self, width, inner):
        super().__init__()
        self.down = nn.Conv2d(width, inner, 1)
        self.up = nn.Conv2d(inner, width, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """The block of MobileNets: wider by a 1x1, a depthwise convolution, narrower by a 1x1."""

    def __init__(self, inputs, outputs, inner, stride, kernel=3, activation=nn.ReLU6, squeeze=0):
        super().__init__()
        layers = [convolution(inputs, inner, 1, activation=activation)] if inner != inputs else []
        layers.append(convolution(inner, inner, kernel, stride, inner, activation))
        if squeeze:
            layers.append(Squeeze(inner, squeeze))
        self.layers = nn.Sequential(*layers, convolution(inner, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class Residual(nn.Module):
    """The block of ResNets: two 3x3 convolutions, or a 3x3 between two 1x1 (`deep`)."""

    def __init__(self, inputs, width, stride, deep):
        super().__init__()
        outputs = 4 * width if deep else width
        if deep:
            self.layers = nn.Sequential(convolution(inputs, width, 1, activation=nn.ReLU),
                                        convolution(width, width, 3, stride, activation=nn.ReLU),
                                        convolution(width, outputs, 1))
        else:
            self.layers = nn.Sequential(convolution(inputs, width, 3, stride, activation=nn.ReLU),
                                        convolution(width, width, 3))
        self.short = (nn.Identity() if stride == 1 and inputs == outputs
                      else convolution(inputs, outputs, 1, stride))

    def forward(self, x):
        return F.relu(self.layers(x) + self.short(x))


def classifier(layers, *end):
    """A network whose last layers see the mean of every channel."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *end)


def mobilenet_v2():
    width, layers = 32, [convolution(3, 32, 3, 2, activation=nn.ReLU6)]
    for factor, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                           (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for index in range(count):
            layers.append(Inverted(width, outputs, factor * width, 1 if index else stride))
            width = outputs
    layers.append(convolution(width, 1280, 1, activation=nn.ReLU6))
    return classifier(layers, nn.Linear(1280, CLASSES))


def mobilenet_v3_large():
    width, layers = 16, [convolution(3, 16, 3, 2, activation=nn.Hardswish)]
    # kernel, inner width, outputs, width of the squeeze, activation, stride
    rows = ((3, 16, 16, 0, nn.ReLU, 1), (3, 64, 24, 0, nn.ReLU, 2), (3, 72, 24, 0, nn.ReLU, 1),
            (5, 72, 40, 24, nn.ReLU, 2), (5, 120, 40, 32, nn.ReLU, 1), (5, 120, 40, 32, nn.ReLU, 1),
            (3, 240, 80, 0, nn.Hardswish, 2), (3, 200, 80, 0, nn.Hardswish, 1),
            (3, 184, 80, 0, nn.Hardswish, 1), (3, 184, 80, 0, nn.Hardswish, 1),
            (3, 480, 112, 120, nn.Hardswish, 1), (3, 672, 112, 168, nn.Hardswish, 1),
            (5, 672, 160, 168, nn.Hardswish, 2), (5, 960, 160, 240, nn.Hardswish, 1),
            (5, 960, 160, 240, nn.Hardswish, 1))
    for kernel, inner, outputs, squeeze, activation, stride in rows:
        layers.append(Inverted(width, outputs, inner, stride, kernel, activation, squeeze))
        width = outputs
    layers.append(convolution(width, 960, 1, activation=nn.Hardswish))
    return classifier(layers, nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, CLASSES))


def resnet(counts, deep):
    width, layers = 64, [convolution(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    for stage, count in enumerate(counts):
        for index in range(count):
            layers.append(Residual(width, 64 << stage, 2 if stage and not index else 1, deep))
            width = (64 << stage) * (4 if deep else 1)
    return classifier(layers, nn.Linear(width, CLASSES))


class Attention(nn.Module):
    """Self-attention of several heads, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (layer(x).reshape(batch, tokens, self.heads, -1).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        weights = torch.softmax(torch.matmul(q * self.scale, k.transpose(-2, -1)), -1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, width))


def vit_tiny():
    network = Vit(width=192, heads=3, blocks=12, side=224)
    for block in network.blocks:
        block["attention"] = Attention(192, 3)
    network.head = nn.Linear(192, CLASSES)
    return network


class Upscaler(nn.Module):
    """A chain of convolutions with PReLU; a pixel shuffle by 4 is added to the enlarged input."""

    def __init__(self, width=64, layers=16):
        super().__init__()
        body = [nn.Conv2d(3, width, 3, padding=1), nn.PReLU(width)]
        for _ in range(layers):
            body += [nn.Conv2d(width, width, 3, padding=1), nn.PReLU(width)]
        self.body = nn.Sequential(*body, nn.Conv2d(width, 48, 3, padding=1))

    def forward(self, x):
        return F.pixel_shuffle(self.body(x), 4) + F.interpolate(x, scale_factor=4.0, mode="nearest")


# name -> (what makes the module, the side of its input)
NETWORKS = {
    "mobilenet_v2": (mobilenet_v2, 224),
    "mobilenet_v3_large": (mobilenet_v3_large, 224),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), 224),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), 224),
    "vit_tiny": (vit_tiny, 224),
    "realesr-animevideov3": (Upscaler, 64),
}


def empty(name):
    """The network's module without memory for its weights, which are to be assigned."""
    with torch.device("meta"):
        return NETWORKS[name][0]().eval()


def make(name):
    """The network's module, and an input of float32 (1, 3, side, side); always the same."""
    function, side = NETWORKS[name]
    torch.manual_seed(SEED)
    module, x = function(), torch.rand(1, 3, side, side)
    randomize(module)
    calibrate(module, (x,))
    return module.eval(), x
