"""The engine's reproducible noise in numpy: Philox4x32-10 and Box-Muller (docs/noise.md)."""

import numpy as np
import numpy.typing as npt

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)


def philox4x32(
    counter: npt.NDArray[np.uint32], key: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Counters [n, 4] and keys [n, 2] (or broadcastable) to n blocks of four random words."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint32) for i in range(4))
    k0, k1 = (key[..., i].astype(np.uint32) for i in range(2))
    for _ in range(_ROUNDS):
        p0 = c0.astype(np.uint64) * _MULTIPLIERS[0]
        p1 = c2.astype(np.uint64) * _MULTIPLIERS[1]
        high0, low0 = ((p0 >> np.uint64(32)).astype(np.uint32), (p0 & _LOW).astype(np.uint32))
        high1, low1 = ((p1 >> np.uint64(32)).astype(np.uint32), (p1 & _LOW).astype(np.uint32))
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1)


def normal_rows(
    seed: int, first_frame: int, frames: int, columns: int, stream: int = 0
) -> npt.NDArray[np.float32]:
    """N(0,1) rows [frames, columns] of the absolute frames first_frame, first_frame + 1, ..."""
    blocks = -(-columns // 4)
    frame = (first_frame + np.arange(frames, dtype=np.int64)).view(np.uint64)[:, None]
    counter = np.empty((frames, blocks, 4), np.uint32)
    counter[..., 0] = np.arange(blocks, dtype=np.uint32)
    counter[..., 1] = np.uint32(stream)
    counter[..., 2] = (frame & _LOW).astype(np.uint32)
    counter[..., 3] = (frame >> np.uint64(32)).astype(np.uint32)
    key = np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)[None, None]
    uniform = (philox4x32(counter, key).astype(np.float64) + 1.0) * 2.0**-32
    radius = np.sqrt(-2.0 * np.log(uniform[..., 0::2]))
    angle = 2.0 * np.pi * uniform[..., 1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.reshape(frames, blocks * 4)[:, :columns].astype(np.float32)
