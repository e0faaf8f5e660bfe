#include "graph/forward_inputs.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "device/backend.h"
#include "graph/rotation.h"
#include "graph/tree_paths.h"
#include "model/config.h"

namespace knap {
namespace {

constexpr std::string_view kWhat = "the inputs of a pass (a smaller `.n_ubatch` needs less)";

// The most mask entries of any pass of full attention: its rows shrink as the context grows.
std::size_t max_mask_size(const BlockRules& rules, int capacity, int n_ubatch) {
    std::size_t most = 0;
    for (int n_kv = capacity; n_kv > 0; n_kv -= kRunStep) {
        // Few rows are padded, and may lie in two blocks.
        const int n_rows = std::max(max_pass_rows(n_kv, rules.n_score_heads, n_ubatch),
                                    rules.max_exact_blocks() * rules.exact_columns);
        most = std::max(most, AttentionBlock{.n_rows = n_rows, .n_kv = n_kv}.mask_size());
    }
    return most;
}

}  // namespace

ForwardInputs::ForwardInputs(const ModelConfig& config, const KvStore& cache, int n_ubatch)
    : config_(config), cache_(cache), n_ubatch_(static_cast<std::size_t>(n_ubatch)) {
    constexpr std::size_t kMaxInputs = 8;
    context_.reset(ggml_init({kMaxInputs * ggml_tensor_overhead(), nullptr, true}));
    ggml_context* ctx = context_.get();
    const auto new_numbers = [&](const char* name, int n) {
        return ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n), name);
    };
    tokens_ = new_numbers("in.tokens", n_ubatch);
    positions_ = new_numbers("in.positions", n_ubatch);
    logit_rows_ = new_numbers("in.logit_rows", n_ubatch);
    runs_ = new_numbers("in.runs", 2 * kMaxBlocks * kMaxWindows);
    slots_ = cache.new_slots(ctx, n_ubatch);
    if (is_tiled(cache.options().layout)) {
        tree_ = new_numbers("in.tree", TreePaths::n_numbers(cache.capacity()));
        unit_pairs_ = ggml_set_name(
            ggml_new_tensor_2d(ctx, GGML_TYPE_F32, config.rope.n_rot, n_ubatch), "in.unit_pairs");
    }
    numbers_.emplace(cache.backend(), ctx, kWhat);
    if (unit_pairs_ != nullptr) {
        fill_unit_pairs(config.rope, numbers_->host<float>(unit_pairs_));
    }
    hidden_context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    hidden_ = ggml_new_tensor_2d(hidden_context_.get(), GGML_TYPE_F32, config.n_embd, n_ubatch);
    ggml_set_name(hidden_, "in.hidden");
    hidden_buffer_.emplace(cache.backend(), hidden_context_.get(), kWhat);
    reserve_masks(max_mask_size(block_rules(config, cache), cache.capacity(), n_ubatch));
}

bool ForwardInputs::reserve_masks(std::size_t n_entries) {
    if (mask_ != nullptr && n_entries <= static_cast<std::size_t>(ggml_nelements(mask_))) {
        return false;
    }
    mask_ = nullptr;  // and so it stays should there be no room
    mask_buffer_.reset();
    mask_context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    ggml_tensor* mask = ggml_new_tensor_1d(mask_context_.get(), GGML_TYPE_F16,
                                           static_cast<std::int64_t>(n_entries));
    mask_buffer_.emplace(cache_.backend(), mask_context_.get(),
                         concat("attention masks of ", n_entries * sizeof(std::uint16_t) >> 20,
                                " MiB (a smaller `.n_ubatch` needs less)"));
    mask_ = ggml_set_name(mask, "in.mask");
    return true;
}

void ForwardInputs::set(const ForwardRequest& request,
                        const AttentionLayout& layout,
                        std::span<const AttentionGroup> groups,
                        int n_rows) {
    const auto fill = [&](std::span<const std::int32_t> values, const ggml_tensor* tensor) {
        std::ranges::copy(values, numbers_->host<std::int32_t>(tensor).begin());
    };
    fill(request.tokens, tokens_);
    fill(request.logit_rows, logit_rows_);
    set_positions(request.first_row, layout, n_rows);
    set_slots(request.first_row, n_rows);
    set_runs(groups);
    if (tree_ != nullptr && layout.kind == AttentionLayout::Kind::tree) {
        TreePaths::write(layout, request.first_row, numbers_->host<std::int32_t>(tree_));
    }
    upload_numbers(n_rows);
    set_masks(request.first_row, layout, groups, 1);
    if (!request.hidden.empty()) {
        std::ranges::copy(request.hidden, hidden_buffer_->host<float>(hidden_).begin());
        hidden_buffer_->upload_until(hidden_, request.hidden.size_bytes());
    }
}

void ForwardInputs::set_chain(const ChainRequest& request,
                              const AttentionLayout& layout,
                              std::span<const AttentionGroup> groups) {
    numbers_->host<std::int32_t>(tokens_)[0] = request.token;
    set_positions(request.first_row, layout, request.n_steps);
    set_slots(request.first_row, request.n_steps);
    upload_numbers(request.n_steps);
    set_masks(request.first_row, layout, groups, request.n_steps);
}

void ForwardInputs::set_slots(int first_row, int n_rows) {
    if (slots_.rows != nullptr) {
        KvStore::fill_slots(numbers_->host<std::int32_t>(slots_.rows), first_row, n_rows);
        return;
    }
    cache_.fill_slots(numbers_->host<std::int64_t>(slots_.keys),
                      numbers_->host<std::int64_t>(slots_.values), first_row, n_rows);
}

// Slots come last of what another device than the host reads.
void ForwardInputs::upload_numbers(int n_rows) {
    if (slots_.values != nullptr) {
        numbers_->upload_until(slots_.values, ggml_nbytes(slots_.values) / n_ubatch_ *
                                                  static_cast<std::size_t>(n_rows));
    }
}

void ForwardInputs::set_positions(int first_row, const AttentionLayout& layout, int n_rows) {
    fill_positions(
        layout, first_row,
        numbers_->host<std::int32_t>(positions_).first(static_cast<std::size_t>(n_rows)));
}

void ForwardInputs::set_masks(int first_row,
                              const AttentionLayout& layout,
                              std::span<const AttentionGroup> groups,
                              int n_steps) {
    auto rest = mask_buffer_->host<std::uint16_t>(mask_);
    for (const AttentionGroup& group : groups) {
        for (const AttentionBlock& block : group.blocks) {
            for (int step = 0; step < n_steps; ++step) {
                build_mask(layout, first_row + step, group.window, block,
                           rest.first(block.mask_size()));
                rest = rest.subspan(block.mask_size());
            }
        }
    }
    mask_buffer_->upload_until(mask_, ggml_nbytes(mask_) - rest.size_bytes());
}

void ForwardInputs::set_runs(std::span<const AttentionGroup> groups) {
    auto out = numbers_->host<std::int32_t>(runs_).begin();
    for (const AttentionGroup& group : groups.subspan(1)) {
        for (const AttentionBlock& block : group.blocks) {
            *out++ = block.n_sinks;
            *out++ = block.recent_row;
        }
    }
}

ggml_tensor* ForwardInputs::tokens(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, tokens_, n_rows, 0);
}

ggml_tensor* ForwardInputs::hidden(ggml_context* ctx, int n_rows) const {
    return ggml_view_2d(ctx, hidden_, hidden_->ne[0], n_rows, hidden_->nb[1], 0);
}

ggml_tensor* ForwardInputs::positions(ggml_context* ctx, int n_rows, int first) const {
    return ggml_view_1d(ctx, positions_, n_rows,
                        static_cast<std::size_t>(first) * positions_->nb[0]);
}

ggml_tensor* ForwardInputs::logit_rows(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, logit_rows_, n_rows, 0);
}

KvSlots ForwardInputs::slots(ggml_context* ctx, int n_rows, int first) const {
    return cache_.view_slots(ctx, slots_, n_rows, first);
}

ggml_tensor* ForwardInputs::turns(ggml_context* ctx, ggml_tensor* divisors, int n_rows) const {
    if (unit_pairs_ == nullptr) {
        return nullptr;
    }
    ggml_tensor* pairs =
        ggml_view_2d(ctx, unit_pairs_, unit_pairs_->ne[0], n_rows, unit_pairs_->nb[1], 0);
    return build_turns(ctx, config_.rope, pairs, positions(ctx, n_rows), divisors);
}

std::array<AttentionInputs, kMaxGroups> ForwardInputs::attention(ggml_context* ctx,
                                                                 const GraphKey& key,
                                                                 int step) const {
    const bool has_runs = path_for(cache_.options().layout) == AttentionPath::kernel;
    std::array<AttentionInputs, kMaxGroups> inputs;
    std::size_t mask_offset = 0;
    std::size_t run_offset = 0;
    for (std::size_t group = 0; group < inputs.size(); ++group) {
        inputs[group].blocks = key.blocks[group];
        for (const AttentionBlock& block : key.blocks[group]) {
            const std::size_t row_bytes = ggml_row_size(GGML_TYPE_F16, block.n_kv);
            const std::size_t n_bytes = row_bytes * static_cast<std::size_t>(block.n_mask_rows());
            inputs[group].masks.push_back(
                ggml_view_2d(ctx, mask_, block.n_kv, block.n_mask_rows(), row_bytes,
                             mask_offset + n_bytes * static_cast<std::size_t>(step)));
            mask_offset += n_bytes * key.n_passes();
            if (has_runs && group > 0) {
                inputs[group].runs.push_back(ggml_view_1d(ctx, runs_, 2, run_offset));
                run_offset += 2 * sizeof(std::int32_t);
            }
        }
    }
    inputs[0].tree = key.follows_tree ? tree_ : nullptr;
    return inputs;
}

std::size_t ForwardInputs::bytes() const {
    return numbers_->size() + hidden_buffer_->size() + mask_buffer_->size();
}

}  // namespace knap
