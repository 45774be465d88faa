"""What is best on which driver. Rows are measured and written by `tools/tune.py --write`.

A driver that has no row (VkDriverId) gets the one named "default". The fields are those of
`vkrt.device.policy.Policy` and `vkrt.work.tuning.Tuning`; `measured` says on what, `why` the
figures behind a choice.
"""

from __future__ import annotations

from typing import Any

DRIVERS: dict[str, dict[str, Any]] = {
    'default': {
        'driver_id': None,
        'storage': 'texel',
        'max_texels': None,
        'specialize': True,
        'tiles': {(8, 8): 20.0, (4, 8): 17.5, (4, 4): 14.0, (2, 4): 10.5, (1, 4): 8.0},
        'lanes': 4096,
        'wide_depthwise': 3,
        'least_groups': 4,
        'speed': {'multiply_adds': 200000000000.0, 'bytes': 30000000000.0, 'dispatch': 5e-06},
        'winograd': False,
        'ceiling': None,
        'loop_limit': None,
        'unlimited_from': (),
        'maps_files': False,
        'measured': 'nothing: for GPUs, which have more lanes than the drivers below',
        'why': {},
    },
    'llvmpipe': {
        'driver_id': 13,
        'storage': 'texel',
        'max_texels': None,
        'specialize': True,
        'tiles': {(8, 8): 19.4, (4, 8): 17.3, (4, 4): 13.9, (2, 4): 11.4, (1, 4): 8.0},
        'lanes': 64,
        'wide_depthwise': 3,
        'least_groups': 4,
        'speed': {'multiply_adds': 12000000000.0, 'bytes': 5000000000.0, 'dispatch': 1e-05},
        'winograd': True,
        'ceiling': {'flops': 22000000000.0, 'bytes': 7200000000.0, 'per_core': True},
        'loop_limit': 60000,
        'unlimited_from': (25, 0),
        'maps_files': True,
        'measured': 'llvmpipe (LLVM 15.0.6, 256 bits), Mesa 22.3.6 (LLVM 15.0.6)',
        'why': {'tiles': 'GFLOP/s 8x8: 19.5, 4x8: 17.4, 4x4: 14.0, 2x4: 11.4, 1x4: 8.1',
                'wide_depthwise': 'times of 2 pixels an invocation over those of 8, by width: 16: '
                                  '1.26, 8: 1.46, 6: 1.32, 4: 1.14, 3: 1.23, 2: 0.93',
                'storage': 'storage buffers take 2.46, 2.11, 2.22 and images 2.00, 1.83, 1.83 '
                           'times as long as texel views (3x3 and 1x1 convolution, product)',
                'specialize': 'convolutions with pushed sizes take 1.02 times as long as with '
                              'constants',
                'winograd': 'resnet18 194 -> 155 ms of CPU, an EDSR 41 -> 24 ms, in arenas of the '
                            'same size',
                'ceiling': 'best product 22.2 GFLOP/s, product with a vector 7.2 GB/s per core',
                'loop_limit': 'Mesa 22.3 ends every loop of an invocation, without a word, once '
                              'all its loops together have made 65535 iterations, 25.0 does not',
                'maps_files': 'imported pages of a read-only mapping are read in place'},
    },
    'swiftshader': {
        'driver_id': 10,
        'storage': 'texel',
        'max_texels': 4194304,
        'specialize': True,
        'tiles': {(8, 8): 19.0, (4, 8): 16.4, (4, 4): 13.6, (2, 4): 10.4, (1, 4): 8.0},
        'lanes': 64,
        'wide_depthwise': 6,
        'least_groups': 4,
        'speed': {'multiply_adds': 3000000000.0, 'bytes': 2000000000.0, 'dispatch': 1e-05},
        'winograd': False,
        'ceiling': {'flops': 4600000000.0, 'bytes': 1200000000.0, 'per_core': True},
        'loop_limit': None,
        'unlimited_from': (),
        'maps_files': True,
        'measured': 'SwiftShader Device (Subzero)',
        'why': {'max_texels': "it reports the specification's minimum of 65536 and reads larger "
                              'views right',
                'tiles': 'GFLOP/s 8x8: 3.2, 4x8: 2.8, 4x4: 2.3, 2x4: 1.8, 1x4: 1.4',
                'wide_depthwise': 'times of 2 pixels an invocation over those of 8, by width: 16: '
                                  '1.13, 8: 1.11, 6: 1.05, 4: 0.91',
                'storage': 'storage buffers take 1.68, 1.57, 1.63 and images 1.22, 1.41, 1.64 '
                           'times as long as texel views (3x3 and 1x1 convolution, product)',
                'specialize': 'convolutions with pushed sizes take 1.01 times as long as with '
                              'constants',
                'winograd': 'resnet18 1074 -> 879 ms of CPU, but without a cache of compiled '
                            'shaders every load pays 0.3 to 0.5 s for its kernels',
                'ceiling': 'best product 4.6 GFLOP/s, product with a vector 1.2 GB/s per core',
                'maps_files': 'imported pages of a read-only mapping are read in place'},
    },
}
