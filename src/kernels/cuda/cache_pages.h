// The layout of keys and values that the CUDA kernels read and write: for every layer its keys,
// then its values, each f16 [page][KV head][row of the page][channel]. Keys are stored after RoPE.
#pragma once

namespace knap {

inline constexpr int kCudaPageRows = 256;

}  // namespace knap
