"""The networks of torchvision and timm that `architectures.py` exports, and all with transformers'.

Large ones are made with fewer or narrower layers, and most pictures are small.
"""

import torch
import torch.nn as nn
from transformer_networks import TRANSFORMERS, pictures
from zoo import import_torchvision


class Results(nn.Module):
    """A network whose results are one tensor, or a tuple of those that `names` names."""

    def __init__(self, network, *names):
        super().__init__()
        self.network = network
        self.names = names

    def forward(self, *inputs):
        results = self.network(*inputs)
        if self.names:
            return tuple(results[name] for name in self.names)
        while not isinstance(results, torch.Tensor):
            results = next(iter(results.values() if isinstance(results, dict) else results))
        return results


# torchvision

def tv(name, side=64, module="models", **arguments):
    """A network by its function's name."""
    library = import_torchvision()
    for part in module.split("."):
        library = getattr(library, part)
    return Results(getattr(library, name)(**arguments)), pictures(side)


def tv_narrow_head(name, features, width=64):
    """One of the early networks, without the hundred million weights of its last layers."""
    network, inputs = tv(name, 224)
    network.network.classifier = nn.Sequential(
        nn.Dropout(), nn.Linear(features, width), nn.ReLU(), nn.Linear(width, 10))
    return network, inputs


def tv_video(name, frames=8, side=64, module="models.video", **arguments):
    network, _ = tv(name, module=module, **arguments)
    return network, (torch.randn(1, 3, frames, side, side),)


def tv_vit():
    models = import_torchvision().models
    return models.VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10), pictures(64)


def tv_swin(version):
    import_torchvision()
    from torchvision.models import swin_transformer as swin

    block = swin.SwinTransformerBlockV2 if version == 2 else swin.SwinTransformerBlock
    merging = swin.PatchMergingV2 if version == 2 else swin.PatchMerging
    return swin.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10, block=block,
                                downsample_layer=merging), pictures(64)


def tv_maxvit():
    models = import_torchvision().models
    return models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10), pictures(64)


TORCHVISION = {
    "alexnet": lambda: tv_narrow_head("alexnet", 256 * 36),
    "vgg11_bn": lambda: tv_narrow_head("vgg11_bn", 512 * 49),
    "googlenet": lambda: tv("googlenet", init_weights=False, aux_logits=False),
    "inception_v3": lambda: tv("inception_v3", 139, init_weights=False, aux_logits=False),
    **{name: (lambda name=name: tv(name)) for name in (
        "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121",
        "squeezenet1_0", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large",
        "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s",
        "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny")},
    "vit": tv_vit,
    "swin": lambda: tv_swin(1),
    "swin_v2": lambda: tv_swin(2),
    "maxvit": tv_maxvit,
    **{name: (lambda name=name: tv(name, module="models.segmentation", weights_backbone=None))
       for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")},
    **{name: (lambda name=name: tv_video(name)) for name in ("r3d_18", "mc3_18", "r2plus1d_18")},
    "s3d": lambda: tv_video("s3d", 16),
    "raft_small": lambda: (Results(tv("raft_small", module="models.optical_flow")[0].network),
                           (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128))),
}

# timm

# name: the pictures' side, and what is told the network
TIMM = {
    "beit_base_patch16_224": (64, {"depth": 2, "embed_dim": 64, "num_heads": 4, "img_size": 64}),
    "caformer_s18": (64, {}),
    "cait_xxs24_224": (64, {"depth": 2, "img_size": 64}),
    "coat_lite_tiny": (64, {"img_size": 64}),
    "coatnet_pico_rw_224": (64, {"img_size": 64}),
    "convit_tiny": (64, {"depth": 3, "local_up_to_layer": 2, "img_size": 64}),
    "convnextv2_atto": (64, {}),
    "crossvit_tiny_240": (240, {"depth": ((1, 2, 0), (1, 2, 0), (1, 2, 0))}),
    "cspdarknet53": (64, {}),
    "cspresnet50": (64, {}),
    "davit_tiny": (112, {"depths": (1, 1, 2, 1)}),
    "deit_tiny_distilled_patch16_224": (64, {"depth": 2, "img_size": 64}),
    "dla34": (64, {}),
    "dpn48b": (64, {}),
    "ecaresnet26t": (64, {}),
    "edgenext_xx_small": (64, {}),
    "efficientformer_l1": (224, {}),
    "efficientformerv2_s0": (224, {}),
    "efficientvit_b0": (64, {}),
    "efficientvit_m0": (224, {}),
    "ese_vovnet19b_dw": (64, {}),
    "eva02_tiny_patch14_224": (56, {"depth": 2, "img_size": 56}),
    "fastvit_t8": (64, {}),
    "fbnetc_100": (64, {}),
    "focalnet_tiny_srf": (64, {}),
    "gcvit_xxtiny": (224, {}),
    "ghostnet_100": (64, {}),
    "gmlp_ti16_224": (64, {"img_size": 64}),
    "hiera_tiny_224": (224, {}),
    "hrnet_w18_small": (64, {}),
    "inception_next_atto": (64, {}),
    "lcnet_050": (64, {}),
    "levit_128s": (224, {}),
    "mambaout_femto": (64, {}),
    "mixer_s32_224": (64, {"img_size": 64}),
    "mixnet_s": (64, {}),
    "mobilenetv4_conv_small": (64, {}),
    "mobileone_s0": (64, {}),
    "mobilevit_xxs": (64, {}),
    "mobilevitv2_050": (64, {}),
    "mvitv2_tiny": (64, {"img_size": 64}),
    "nest_tiny": (64, {"img_size": 64}),
    "nf_resnet26": (64, {}),
    "nfnet_l0": (64, {}),
    "pit_ti_224": (224, {"depth": (1, 2, 1)}),
    "poolformerv2_s12": (64, {}),
    "pvt_v2_b0": (64, {}),
    "repvgg_a0": (64, {}),
    "repvit_m0_9": (64, {}),
    "res2net50_26w_4s": (64, {}),
    "resmlp_12_224": (64, {"img_size": 64}),
    "resnest14d": (64, {}),
    "resnetv2_50": (64, {}),
    "rexnet_100": (64, {}),
    "sequencer2d_s": (64, {"layers": (1, 1, 1, 1), "img_size": 64}),
    "skresnet18": (64, {}),
    "starnet_s1": (64, {}),
    "tf_efficientnet_lite0": (64, {}),
    "tinynet_e": (64, {}),
    "tiny_vit_5m_224": (224, {"depths": (1, 1, 2, 1)}),
    "tnt_s_legacy_patch16_224": (64, {"depth": 2, "img_size": 64}),
    "twins_pcpvt_small": (64, {"depths": (1, 1, 2, 1), "img_size": 64}),
    "visformer_tiny": (224, {}),
    "vit_tiny_patch16_224": (64, {"depth": 2, "img_size": 64}),
    "volo_d1_224": (64, {"img_size": 64}),
    "xception41": (64, {}),
    "xcit_nano_12_p16_224": (64, {"depth": 2, "img_size": 64}),
}


def from_timm(name):
    import_torchvision()
    import timm

    side, arguments = TIMM[name]
    return timm.create_model(name, pretrained=False, num_classes=10, **arguments), pictures(side)


NETWORKS = {
    **{f"torchvision-{name}": make for name, make in TORCHVISION.items()},
    **{f"timm-{name}": (lambda name=name: from_timm(name)) for name in TIMM},
    **{f"transformers-{name}": make for name, make in TRANSFORMERS.items()},
}
