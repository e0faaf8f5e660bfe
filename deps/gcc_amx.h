// Included before every C++ file of ggml (deps/setup). In GCC 12 the operand of _tile_loadconfig() covers only 8 of the 64
// bytes that the instruction reads, so the optimiser drops the stores to the rest: ggml then runs AMX code without tiles,
// which ends in an illegal instruction.
#pragma once
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
static inline void load_whole_tile_config(const void* config) {
    __asm__ volatile("ldtilecfg %0" ::"m"(*static_cast<const unsigned char(*)[64]>(config)));
}
#undef _tile_loadconfig
#define _tile_loadconfig load_whole_tile_config
#endif
