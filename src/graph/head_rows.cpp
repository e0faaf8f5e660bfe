#include "graph/head_rows.h"

#include <array>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/heads.h"

namespace knap {
namespace {

const HeadsKernel& heads_kernel() {
    return heads_kernels().front();
}

}  // namespace

void HeadRows::rotate(const float* turns, const float* x, float* out) const {
    const auto rotate_head = config_.rope.pairing == RopePairing::halves
                                 ? heads_kernel().rotate_halves
                                 : heads_kernel().rotate_neighbours;
    rotate_head(config_.head_dim, config_.rope.n_rot, turns, x, out);
}

void HeadRows::store_key(int head, int stored, const float* turns, const float* key) const {
    std::array<float, kMaxAttentionHeadDim> rotated;
    rotate(turns, key, rotated.data());
    const int lane = stored % kKeyTile;
    const int first = stored - lane;
    if (!is_int8()) {
        heads_kernel().store_key(config_.head_dim, rotated.data(), lane,
                                 cached_row<std::uint16_t>(cached_.keys, head, first));
        return;
    }
    *cached_row<std::uint16_t>(cached_.key_scales, head, stored) =
        heads_kernel().store_int8_key(config_.head_dim, rotated.data(), lane,
                                      cached_row<std::uint8_t>(cached_.keys, head, first));
}

void HeadRows::store_value(int head, int stored, const float* value) const {
    if (!is_int8()) {
        heads_kernel().store_value(config_.head_dim, value,
                                   cached_row<std::uint16_t>(cached_.values, head, stored));
        return;
    }
    const int lane = stored % kValueTile;
    *cached_row<std::uint16_t>(cached_.value_scales, head, stored) =
        heads_kernel().store_int8_value(
            config_.head_dim, value, lane,
            cached_row<std::int8_t>(cached_.values, head, stored - lane));
}

}  // namespace knap
