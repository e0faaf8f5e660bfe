#include "cpu/weights_ahead.h"

#include <algorithm>

#include "cpu/cpu_pass.h"
#include "cpu/tiles.h"

namespace knap {
namespace {

// With more rows, products wait for arithmetic and not for weights.
constexpr int kFewRows = 4;
// A part of a core's second cache, and more than there is ever time for.
constexpr std::size_t kMaxBytes = 128 << 10;
// Of a group at the beginning of a product. A thread with more than a few rows fetches a whole
// group ahead, so less would leave it waiting.
constexpr std::size_t kFirstBytes = 32 << 10;
constexpr std::size_t kLine = 64;
// So few that the thread soon looks again whether the others are done.
constexpr int kLinesAtOnce = 4;

}  // namespace

std::span<const std::byte> first_weights(const PackedMatrix& matrix, int first_group) {
    const std::size_t n_group_bytes = group_bytes(matrix.type, matrix.n_in);
    return {matrix.data + n_group_bytes * static_cast<std::size_t>(first_group),
            std::min(n_group_bytes, kFirstBytes)};
}

void WeightsAhead::expect(Product product, int number, int n_rows) {
    product_ = product;
    number_ = number;
    n_rows_ = n_rows;
    is_planned_ = false;
}

bool WeightsAhead::step() {
    const auto pieces = planned();
    for (int i = 0; i < kLinesAtOnce; ++i) {
        if (piece_ == pieces.size()) {
            return false;
        }
        constexpr int kForReading = 0;
        constexpr int kSecondLevel = 2;
        __builtin_prefetch(pieces[piece_].data() + at_, kForReading, kSecondLevel);
        at_ += kLine;
        if (at_ >= pieces[piece_].size()) {
            at_ = 0;
            ++piece_;
        }
    }
    return true;
}

// Only for a thread that waits: with few threads most phases end before that.
std::span<const std::span<const std::byte>> WeightsAhead::planned() {
    if (!is_planned_) {
        is_planned_ = true;
        n_pieces_ = 0;
        n_bytes_ = 0;
        piece_ = 0;
        at_ = 0;
        if (n_rows_ <= kFewRows) {
            plan(pieces_.size());
        }
    }
    return std::span(pieces_).first(n_pieces_);
}

std::span<const std::byte> WeightsAhead::first() {
    const bool is_planned = is_planned_ && n_pieces_ > 0;
    if (!is_planned) {
        n_pieces_ = 0;
        n_bytes_ = 0;
        plan(1);
    }
    std::span<const std::byte> piece;
    if (n_pieces_ > 0) {
        piece = pieces_.front();
    }
    if (!is_planned) {
        n_pieces_ = 0;  // the others are planned once this thread waits
    }
    return piece.first(std::min(piece.size(), kFirstBytes));
}

void WeightsAhead::plan(std::size_t max_pieces) {
    max_pieces_ = max_pieces;
    switch (product_) {
        case Product::none:
            return;
        case Product::output:
            return plan_product(*model_.layer(number_).o.matrix);
        case Product::down:
            return plan_product(*model_.layer(number_).down.matrix);
        case Product::module:
            return plan_module(number_);
    }
}

void WeightsAhead::plan_module(int module) {
    for (; module < 2 * request_.exit_layer; ++module) {
        const int layer = module / 2;
        const CpuLayer& weights = model_.layer(layer);
        const bool is_attention = module % 2 == 0;
        if (is_attention && request_.plan->runs(layer, Module::attention)) {
            return plan_heads(weights);
        }
        if (!is_attention && weights.has_mlp() && request_.plan->runs(layer, Module::mlp)) {
            // Which experts come is known only once the router has been computed.
            return weights.has_experts() ? plan_product(*weights.router.matrix)
                                         : plan_gates(weights);
        }
    }
    if (!request_.logit_rows.empty()) {
        plan_product(*request_.head.matrix);
    }
}

void WeightsAhead::plan_heads(const CpuLayer& layer) {
    const HeadUnits units(model_.config.head_dim);
    const int n_query_units = units.count(model_.config.n_heads);
    const int n_key_units = units.count(model_.config.n_kv_heads);
    const Tiles tiles(n_query_units + 2 * n_key_units, n_rows_, member_.n_threads(), 1);
    const int end = member_.share_end(tiles.size());
    for (int item = member_.share_begin(tiles.size()); item < end && has_room(); ++item) {
        const int unit = tiles[item].first_unit;
        const int key_unit = unit - n_query_units;
        const CpuMatrix& matrix = key_unit < 0             ? layer.q
                                  : key_unit < n_key_units ? layer.k
                                                           : layer.v;
        const int first = key_unit < 0 ? unit : key_unit % n_key_units;
        add(*matrix.matrix, first * units.n_groups, units.n_groups);
    }
}

void WeightsAhead::plan_product(const PackedMatrix& matrix) {
    const Tiles tiles(matrix.n_groups(), n_rows_, member_.n_threads());
    const int end = member_.share_end(tiles.size());
    for (int item = member_.share_begin(tiles.size()); item < end && has_room(); ++item) {
        add(matrix, tiles[item].first_unit, tiles[item].n_units);
    }
}

void WeightsAhead::plan_gates(const CpuLayer& layer) {
    const Tiles tiles(layer.gate.matrix->n_groups(), n_rows_, member_.n_threads(),
                      Tiles::kMaxGateUnits);
    const int end = member_.share_end(tiles.size());
    for (int item = member_.share_begin(tiles.size()); item < end && has_room(); ++item) {
        const Tile tile = tiles[item];
        add(*layer.gate.matrix, tile.first_unit, tile.n_units);
        add(*layer.up.matrix, tile.first_unit, tile.n_units);
    }
}

bool WeightsAhead::has_room() const {
    return n_pieces_ < max_pieces_ && n_bytes_ < kMaxBytes;
}

void WeightsAhead::add(const PackedMatrix& matrix, int first_group, int n_groups) {
    if (!has_room()) {
        return;
    }
    const std::size_t n_group_bytes = group_bytes(matrix.type, matrix.n_in);
    const std::byte* at = matrix.data + n_group_bytes * static_cast<std::size_t>(first_group);
    const auto n = static_cast<std::size_t>(std::min(n_groups, matrix.n_groups() - first_group));
    const std::size_t n_bytes = std::min(n * n_group_bytes, kMaxBytes - n_bytes_);
    pieces_[n_pieces_++] = {at, n_bytes};
    n_bytes_ += n_bytes;
}

}  // namespace knap
