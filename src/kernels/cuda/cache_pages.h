// The layout of keys and values that the CUDA kernels read and write: f16 [layer][page][KV
// head][row of the page][channel], all keys and then all values. With q8_0 these are codes of eight
// bits, and apart from them there is a scale for each 32 channels: f16 [layer][page][KV head][row
// of the page][scale_places()]. A number is its code times its scale, as in ggml's blocks of this
// type. Keys are stored after RoPE.
#pragma once

namespace knap {

inline constexpr int kCudaPageRows = 256;
inline constexpr int kCacheBlock = 32;  // channels that share a scale

// Places for the scales of a row of a head: a power of two, so that one copy brings all of them.
constexpr int scale_places(int head_dim) {
    return head_dim <= 64 ? 2 : head_dim <= 128 ? 4 : 8;
}

}  // namespace knap
