// The tile registers of AMX: sums of 16 rows and 16 weights over 32 inputs. Only on machines that
// have them and in processes that may use them (isa.cpp).
//
// Instructions are written out, because GCC 12 does not know which memory its own functions for
// tiles read and write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace knap {
namespace {

// For as long as one lives, the registers of its thread have the shapes of a product. Then they
// have those of before: other libraries in the process, such as ggml, configure a thread once and
// rely on it.
class AmxTiles {
  public:
    AmxTiles() {
        __asm__ volatile("sttilecfg %0" : "=m"(before_));
        const Shapes own{
            .palette = 1,
            // Registers 0: inputs, 1: weights, 2: sums.
            .row_bytes = {32, 64, 64},
            .n_rows = {16, 8, 16},
        };
        __asm__ volatile("ldtilecfg %0" ::"m"(own));
    }
    // Threads whose registers are in use take longer to switch.
    ~AmxTiles() {
        if (before_.palette == 0) {
            __asm__ volatile("tilerelease");
        } else {
            __asm__ volatile("ldtilecfg %0" ::"m"(before_));
        }
    }
    AmxTiles(const AmxTiles&) = delete;
    AmxTiles& operator=(const AmxTiles&) = delete;

    // sums[i][o] is the sum of inputs[i][k] * weights[k / 4][o][k % 4] over all k: inputs are
    // signed [16][32], weights unsigned [8][16][4], sums [16][16].
    [[gnu::always_inline]] static void multiply(const std::int8_t* inputs,
                                                const std::byte* weights,
                                                std::int32_t* sums) {
        __asm__ volatile(
            "tilezero %%tmm2\n\t"
            "tileloadd (%0,%3,1), %%tmm0\n\t"
            "tileloadd (%1,%4,1), %%tmm1\n\t"
            "tdpbsud %%tmm1, %%tmm0, %%tmm2\n\t"
            "tilestored %%tmm2, (%2,%4,1)"
            :
            : "r"(inputs), "r"(weights), "r"(sums), "r"(std::size_t{32}), "r"(std::size_t{64})
            : "memory");
    }

  private:
    struct alignas(64) Shapes {
        std::uint8_t palette = 0;  // 0: not configured
        std::uint8_t start_row = 0;
        std::uint8_t reserved[14] = {};
        std::uint16_t row_bytes[16] = {};
        std::uint8_t n_rows[16] = {};
    };
    static_assert(sizeof(Shapes) == 64);

    Shapes before_;
};

}  // namespace
}  // namespace knap
