#include "model/head_subset.h"

#include <algorithm>
#include <limits>

#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"
#include "model/row_invariance.h"
#include "model/weights.h"

namespace knap {
namespace {

constexpr int kMostFrequent = 8192;
// At least so many rows are for end-of-generation tokens and the text.
constexpr int kLeastRoom = 64;

// The lowest ids that are held whatever the text: a quarter of a small vocabulary.
int count_frequent(int n_vocab) {
    constexpr int kMultiple = 32;  // of rows: what kernels like
    const int n_tokens = std::min(kMostFrequent, n_vocab / 4);
    return n_tokens < kMultiple ? n_tokens : n_tokens / kMultiple * kMultiple;
}

// The head as rows. A tied head that was repacked is the embedding, of which there is a plain copy.
HeadTensors readable_head(const Weights& weights) {
    const ModelTensors& tensors = weights.tensors();
    if (layout_of(tensors.output) == WeightLayout::plain) {
        return {tensors.output, tensors.output_b};
    }
    const bool has_copy =
        weights.statistics().has_tied_head && layout_of(tensors.token_embd) == WeightLayout::plain;
    return {has_copy ? tensors.token_embd : nullptr, tensors.output_b};
}

const std::byte* row_data(const ggml_tensor* tensor, std::size_t row, std::size_t row_bytes) {
    return static_cast<const std::byte*>(tensor->data) + row * row_bytes;
}

}  // namespace

bool HeadSubset::is_possible(const Weights& weights) {
    return readable_head(weights).weight != nullptr;
}

int HeadSubset::capacity_for(int n_vocab) {
    const int n_frequent = count_frequent(n_vocab);
    return std::min(n_vocab, n_frequent + std::max(n_frequent / 4, kLeastRoom));
}

HeadSubset::HeadSubset(const Weights& weights,
                       const Backend& backend,
                       std::span<const Token> always)
    : backend_(backend), source_(readable_head(weights)) {
    KNAP_ASSERT(source_.weight != nullptr, "the rows of the head can be read");
    const int n_vocab = static_cast<int>(source_.weight->ne[1]);
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
    context_.reset(ggml_init({kTensors * ggml_tensor_overhead(), nullptr, true}));
    HeadTensors made;
    made.weight = ggml_set_name(
        ggml_new_tensor_2d(context_.get(), source_.weight->type, source_.weight->ne[0], capacity_),
        "draft_head.weight");
    if (source_.bias != nullptr) {
        made.bias = ggml_set_name(ggml_new_tensor_1d(context_.get(), source_.bias->type, capacity_),
                                  "draft_head.bias");
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), backend_.buffer_type()));
    if (buffer_ == nullptr) {
        fail("memory: expected ", ggml_nbytes(made.weight) >> 20,
             " MiB for the draft's head (head=reduced), found less");
    }
    ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(buffer_.get(),
                              0);  // rows that nothing was copied to are computed too
    own_ = made;
}

void HeadSubset::copy_row(std::size_t row) {
    const auto copy = [&](const ggml_tensor* from, ggml_tensor* to, std::size_t row_bytes) {
        const auto token = static_cast<std::size_t>(tokens_[row]);
        ggml_backend_tensor_set(to, row_data(from, token, row_bytes), row * row_bytes, row_bytes);
    };
    copy(source_.weight, own_.weight, source_.weight->nb[1]);
    if (source_.bias != nullptr) {
        copy(source_.bias, own_.bias, source_.bias->nb[0]);
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
