#include "model/head_subset.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"
#include "model/row_invariance.h"
#include "model/weights.h"

namespace knap {
namespace {

constexpr int kMostFrequent = 8192;
// At least this many rows are for end-of-generation tokens and the text.
constexpr int kLeastRoom = 64;

// How many of the lowest ids are always present: at most a quarter of the vocabulary.
int count_frequent(int n_vocab) {
    constexpr int kMultiple = 32;  // kernels prefer a multiple of 32 rows
    const int n_tokens = std::min(kMostFrequent, n_vocab / 4);
    return n_tokens < kMultiple ? n_tokens : n_tokens / kMultiple * kMultiple;
}

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

}  // namespace

// When ggml has repacked a tied head, its rows are read from the embedding, which is a plain copy.
HeadSubset::Source HeadSubset::find_source(const Weights& weights) {
    const ModelTensors& tensors = weights.tensors();
    const HeadTensors head{tensors.output, tensors.output_b};
    switch (layout_of(tensors.output, tensors)) {
        case WeightLayout::packed:
            return {head, packed_weight(tensors.output)->stored};
        case WeightLayout::plain:
            return {head, static_cast<const std::byte*>(tensors.output->data)};
        default:
            break;
    }
    const bool has_copy = layout_of(tensors.output, tensors) == WeightLayout::repacked &&
                          weights.statistics().has_tied_head &&
                          layout_of(tensors.token_embd) == WeightLayout::plain;
    if (!has_copy) {
        return {};
    }
    return {{tensors.token_embd, tensors.output_b},
            static_cast<const std::byte*>(tensors.token_embd->data)};
}

bool HeadSubset::is_possible(const Weights& weights) {
    return find_source(weights).rows != nullptr;
}

int HeadSubset::capacity_for(int n_vocab) {
    const int n_frequent = count_frequent(n_vocab);
    return std::min(n_vocab, n_frequent + std::max(n_frequent / 4, kLeastRoom));
}

HeadSubset::HeadSubset(const Weights& weights,
                       const Backend& backend,
                       std::span<const Token> always)
    : id_(next_id()), backend_(backend), source_(find_source(weights)) {
    KNAP_ASSERT(source_.rows != nullptr, "the rows of the head can be read");
    const int n_vocab = static_cast<int>(source_.head.weight->ne[1]);
    capacity_ = capacity_for(n_vocab);
    has_row_.assign(static_cast<std::size_t>(n_vocab), false);
    tokens_.reserve(static_cast<std::size_t>(capacity_));
    for (Token token = 0; token < count_frequent(n_vocab); ++token) {
        add(token);
    }
    for (const Token token : always) {
        if (static_cast<int>(tokens_.size()) + 1 < capacity_) {
            add(token);
        }
    }
    n_kept_ = tokens_.size();
    next_to_go_ = n_kept_;
}

void HeadSubset::begin(std::span<const Token> text) {
    for (const Token token : std::span(tokens_).subspan(n_kept_)) {
        has_row_[static_cast<std::size_t>(token)] = false;
    }
    tokens_.resize(n_kept_);
    next_to_go_ = n_kept_;
    for (const Token token : text) {
        add(token);
    }
}

void HeadSubset::add(Token token) {
    if (has_row_[static_cast<std::size_t>(token)]) {
        return;
    }
    const auto n_rows = static_cast<std::size_t>(capacity_);
    if (tokens_.size() < n_rows) {
        tokens_.push_back(token);
        put(token, tokens_.size() - 1);
        return;
    }
    has_row_[static_cast<std::size_t>(tokens_[next_to_go_])] = false;
    put(token, next_to_go_);
    next_to_go_ = next_to_go_ + 1 < n_rows ? next_to_go_ + 1 : n_kept_;
}

void HeadSubset::put(Token token, std::size_t row) {
    tokens_[row] = token;
    has_row_[static_cast<std::size_t>(token)] = true;
    if (own_.weight != nullptr) {
        copy_row(row);
    }
}

HeadTensors HeadSubset::tensors() {
    if (own_.weight == nullptr) {
        make_tensors();
        for (std::size_t row = 0; row < tokens_.size(); ++row) {
            copy_row(row);
        }
    }
    return own_;
}

void HeadSubset::make_tensors() {
    constexpr std::size_t kTensors = 2;
    const HeadTensors& whole = source_.head;
    const bool is_packed = layout_of(whole.weight) == WeightLayout::packed;
    // A packed matrix has whole groups.
    const int n_rows =
        is_packed ? (capacity_ + kGroupRows - 1) / kGroupRows * kGroupRows : capacity_;
    context_.reset(ggml_init({kTensors * ggml_tensor_overhead(), nullptr, true}));
    HeadTensors made;
    made.weight = ggml_set_name(
        ggml_new_tensor_2d(context_.get(), whole.weight->type, whole.weight->ne[0], n_rows),
        "draft_head.weight");
    if (whole.bias != nullptr) {
        made.bias = ggml_set_name(ggml_new_tensor_1d(context_.get(), whole.bias->type, capacity_),
                                  "draft_head.bias");
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), backend_.buffer_type()));
    if (buffer_ == nullptr) {
        fail("memory: expected ", ggml_nbytes(made.weight) >> 20,
             " MiB for the draft's head (head=reduced), found less");
    }
    ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    // The product also computes rows that hold no token.
    ggml_backend_buffer_clear(buffer_.get(), 0);
    if (is_packed) {
        made.weight->ne[1] = capacity_;
        packed_ = {.matrix = {.type = made.weight->type,
                              .n_in = static_cast<int>(made.weight->ne[0]),
                              .n_out = capacity_,
                              .data = static_cast<std::byte*>(made.weight->data)}};
        set_packed_weight(made.weight, packed_);
    }
    own_ = made;
}

void HeadSubset::copy_row(std::size_t row) {
    const auto token = static_cast<std::size_t>(tokens_[row]);
    const ggml_tensor* weight = source_.head.weight;
    const std::size_t row_bytes = ggml_row_size(weight->type, weight->ne[0]);
    const std::byte* stored = source_.rows + token * row_bytes;
    if (packed_.matrix.data != nullptr) {
        pack_row(packed_.matrix, static_cast<int>(row), stored);
    } else {
        ggml_backend_tensor_set(own_.weight, stored, row * row_bytes, row_bytes);
    }
    if (const ggml_tensor* bias = source_.head.bias) {
        const std::size_t size = bias->nb[0];
        ggml_backend_tensor_set(own_.bias, static_cast<const std::byte*>(bias->data) + token * size,
                                row * size, size);
    }
}

void HeadSubset::spread(std::span<const float> logits, std::vector<float>& out) const {
    const auto n_rows = static_cast<std::size_t>(capacity_);
    const std::size_t n_vocab = has_row_.size();
    out.assign(logits.size() / n_rows * n_vocab, -std::numeric_limits<float>::infinity());
    for (float* row = out.data(); !logits.empty(); row += n_vocab) {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            row[tokens_[i]] = logits[i];
        }
        logits = logits.subspan(n_rows);
    }
}

std::size_t HeadSubset::bytes() const {
    return buffer_ != nullptr ? ggml_backend_buffer_get_size(buffer_.get()) : 0;
}

}  // namespace knap
