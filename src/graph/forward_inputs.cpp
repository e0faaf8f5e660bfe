#include "graph/forward_inputs.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "device/backend.h"
#include "graph/attention/attention_mask.h"
#include "graph/rotation.h"
#include "kv/sequence.h"
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

// Rows of a run, for masks.
struct MaskedRun {
    const AttentionLayout& layout;
    int first_row;  // of the sequence
    int first;      // row of the pass
};

}  // namespace

ForwardInputs::ForwardInputs(const ModelConfig& config,
                             const GgmlKvStore& cache,
                             const BlockRules& rules,
                             int n_ubatch)
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
    if (config.temperature.scale != 0) {
        query_scales_ = ggml_set_name(ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 1, 1, n_ubatch),
                                      "in.query_scales");
    }
    if (!config.rope.divisors.empty()) {
        divisors_ = ggml_set_name(
            ggml_new_tensor_1d(ctx, GGML_TYPE_F32,
                               static_cast<std::int64_t>(config.rope.divisors.size())),
            "in.rope_divisors");
    }
    slots_ = cache.new_slots(ctx, n_ubatch);
    if (is_tiled(cache.layout())) {
        unit_pairs_ = ggml_set_name(
            ggml_new_tensor_2d(ctx, GGML_TYPE_F32, config.rope.n_rot, n_ubatch), "in.unit_pairs");
    }
    numbers_.emplace(cache.backend(), ctx, kWhat);
    if (unit_pairs_ != nullptr) {
        fill_unit_pairs(config.rope, numbers_->host<float>(unit_pairs_));
    }
    if (divisors_ != nullptr) {
        std::ranges::copy(config.rope.divisors, numbers_->host<float>(divisors_).begin());
    }
    hidden_context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    hidden_ = ggml_new_tensor_2d(hidden_context_.get(), GGML_TYPE_F32, config.n_embd, n_ubatch);
    ggml_set_name(hidden_, "in.hidden");
    hidden_buffer_.emplace(cache.backend(), hidden_context_.get(), kWhat);
    if (!is_tiled(cache.layout())) {
        reserve_masks(max_mask_size(rules, cache.page_rows(), n_ubatch));
    }
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

void ForwardInputs::set(const PassRows& rows,
                        const GraphKey& key,
                        std::span<const AttentionGroup> groups) {
    const auto tokens = numbers_->host<std::int32_t>(tokens_);
    const auto positions = numbers_->host<std::int32_t>(positions_);
    const auto logit_rows = numbers_->host<std::int32_t>(logit_rows_);
    const auto n_embd = static_cast<std::size_t>(config_.n_embd);
    const auto n_padded = static_cast<std::size_t>(key.n_rows);
    const auto n_rows = static_cast<std::size_t>(rows.n_rows);
    const bool has_hidden = !rows.any_request().hidden.empty();
    for (std::size_t i = 0; i < rows.runs.size(); ++i) {
        const RowRun& run = rows.run(i);
        const ForwardRequest& request = run.request;
        const auto first = static_cast<std::size_t>(rows.first[i]);
        const auto n_own = static_cast<std::size_t>(run.n_rows);
        std::ranges::copy(request.tokens.first(request.tokens.empty() ? 0 : n_own),
                          tokens.begin() + rows.first[i]);
        fill_positions(request.layout, request.first_row, positions.subspan(first, n_own));
        if (has_hidden) {
            std::ranges::copy(request.hidden.first(n_own * n_embd),
                              hidden_buffer_->host<float>(hidden_).subspan(first * n_embd).begin());
        }
    }
    // Padding is any token at the first position.
    std::ranges::fill(tokens.subspan(n_rows, n_padded - n_rows), 0);
    std::ranges::fill(positions.subspan(n_rows, n_padded - n_rows), 0);
    std::ranges::copy(rows.logit_rows, logit_rows.begin());
    std::fill(logit_rows.begin() + static_cast<std::ptrdiff_t>(rows.logit_rows.size()),
              logit_rows.begin() + key.n_logit_rows, 0);
    set_slots(rows.stored, key.n_rows);
    upload_numbers(rows.n_rows);
    if (has_hidden) {
        const auto hidden = hidden_buffer_->host<float>(hidden_).first(n_padded * n_embd);
        std::ranges::fill(hidden.subspan(n_rows * n_embd), 0.0f);
        hidden_buffer_->upload_until(hidden_, hidden.size_bytes());
    }
    if (mask_ != nullptr) {
        set_masks(groups, 1, [&](int run) {
            const auto i = static_cast<std::size_t>(run);
            const ForwardRequest& request = rows.run(i).request;
            return MaskedRun{request.layout, request.first_row, rows.first[i]};
        });
    }
}

// Masks of a block for `n_steps` passes, each a row further, lie one after the other. `run_of`
// gives the rows of a run of the pass.
template <typename RunOf>
void ForwardInputs::set_masks(std::span<const AttentionGroup> groups, int n_steps, RunOf run_of) {
    auto rest = mask_buffer_->host<std::uint16_t>(mask_);
    for (const AttentionGroup& group : groups) {
        for (std::size_t i = 0; i < group.blocks.size(); ++i) {
            const MaskedRun run = run_of(group.runs[i]);
            AttentionBlock block = group.blocks[i];
            block.first -= run.first;
            for (int step = 0; step < n_steps; ++step) {
                build_mask(run.layout, run.first_row + step, group.scope(), block,
                           rest.first(block.mask_size()));
                rest = rest.subspan(block.mask_size());
            }
        }
    }
    mask_buffer_->upload_until(mask_, ggml_nbytes(mask_) - rest.size_bytes());
}

void ForwardInputs::set_chain(const ChainRun& run, std::span<const AttentionGroup> groups) {
    const ChainRequest& request = run.request;
    const AttentionLayout layout{.context = run.context};
    const auto n_steps = static_cast<std::size_t>(request.n_steps);
    numbers_->host<std::int32_t>(tokens_)[0] = request.token;
    fill_positions(layout, request.first_row,
                   numbers_->host<std::int32_t>(positions_).first(n_steps));
    std::vector<std::int32_t> stored;
    for (int step = 0; step < request.n_steps; ++step) {
        stored.push_back(run.sequence->stored_row(request.first_row + step));
    }
    set_slots(stored, request.n_steps);
    upload_numbers(request.n_steps);
    set_masks(groups, request.n_steps, [&](int /*run*/) {
        return MaskedRun{layout, request.first_row, 0};
    });
}

void ForwardInputs::set_slots(std::span<const std::int32_t> stored, int n_padded) {
    if (slots_.rows != nullptr) {
        const auto slots = numbers_->host<std::int32_t>(slots_.rows);
        std::ranges::copy(stored, slots.begin());
        std::fill(slots.begin() + static_cast<std::ptrdiff_t>(stored.size()),
                  slots.begin() + n_padded, -1);
        return;
    }
    cache_.fill_slots(numbers_->host<std::int64_t>(slots_.keys),
                      numbers_->host<std::int64_t>(slots_.values), stored);
}

// Slots come last of what another device than the host reads.
void ForwardInputs::upload_numbers(int n_rows) {
    if (query_scales_ != nullptr) {
        const auto positions =
            numbers_->host<std::int32_t>(positions_).first(static_cast<std::size_t>(n_rows));
        std::ranges::transform(positions, numbers_->host<float>(query_scales_).begin(),
                               [&](int at) { return query_scale(config_.temperature, at); });
    }
    if (slots_.values != nullptr) {
        numbers_->upload_until(slots_.values, ggml_nbytes(slots_.values) / n_ubatch_ *
                                                  static_cast<std::size_t>(n_rows));
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

ggml_tensor* ForwardInputs::query_scales(ggml_context* ctx, int n_rows, int first) const {
    if (query_scales_ == nullptr) {
        return nullptr;
    }
    return ggml_view_3d(ctx, query_scales_, 1, 1, n_rows, query_scales_->nb[1],
                        query_scales_->nb[2],
                        static_cast<std::size_t>(first) * query_scales_->nb[2]);
}

ggml_tensor* ForwardInputs::unit_pairs(ggml_context* ctx, int n_rows) const {
    return unit_pairs_ == nullptr
               ? nullptr
               : ggml_view_2d(ctx, unit_pairs_, unit_pairs_->ne[0], n_rows, unit_pairs_->nb[1], 0);
}

ggml_tensor* ForwardInputs::logit_rows(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, logit_rows_, n_rows, 0);
}

KvSlots ForwardInputs::slots(ggml_context* ctx, int n_rows, int first) const {
    return cache_.view_slots(ctx, slots_, n_rows, first);
}

ggml_tensor* ForwardInputs::rope_table(ggml_context* ctx,
                                       Rotation rotation,
                                       ggml_tensor* divisors,
                                       int n_rows) const {
    const bool is_used = config_.has(rotation);
    ggml_tensor* pairs = is_used ? unit_pairs(ctx, n_rows) : nullptr;
    return pairs == nullptr ? nullptr
                            : build_rope_table(ctx, config_.rope_of(rotation), pairs,
                                               positions(ctx, n_rows), divisors);
}

std::array<AttentionInputs, kMaxGroups> ForwardInputs::attention(ggml_context* ctx,
                                                                 const GraphKey& key,
                                                                 int step) const {
    std::array<AttentionInputs, kMaxGroups> inputs;
    std::size_t mask_offset = 0;
    for (std::size_t group = 0; group < inputs.size(); ++group) {
        inputs[group].blocks = key.blocks[group];
        for (const AttentionBlock& block : key.blocks[group]) {
            const std::size_t row_bytes = ggml_row_size(GGML_TYPE_F16, block.n_kv);
            const std::size_t n_bytes = row_bytes * static_cast<std::size_t>(block.n_mask_rows());
            inputs[group].masks.push_back(
                ggml_view_2d(ctx, mask_, block.n_kv, block.n_mask_rows(), row_bytes,
                             mask_offset + n_bytes * static_cast<std::size_t>(step)));
            mask_offset += n_bytes * key.n_passes();
        }
    }
    return inputs;
}

std::size_t ForwardInputs::bytes() const {
    return numbers_->size() + hidden_buffer_->size() + (mask_buffer_ ? mask_buffer_->size() : 0);
}

}  // namespace knap
