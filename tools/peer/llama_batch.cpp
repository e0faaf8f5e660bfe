#include "tools/peer/llama_batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tools/peer/llama_context.h"

namespace knap {

struct LlamaBatch::Impl {
    Impl(LlamaContext opened, const PeerOptions& how)
        : options(how),
          context(std::move(opened)),
          n_rows(static_cast<std::size_t>(how.n_sequences)) {}

    int& rows_of(int sequence) { return n_rows[static_cast<std::size_t>(sequence)]; }

    PeerOptions options;
    LlamaContext context;
    std::vector<int> n_rows;  // [n_sequences]
};

LlamaBatch::LlamaBatch(const std::filesystem::path& path, const PeerOptions& options)
    : impl_(std::make_unique<Impl>(LlamaContext(path, options), options)) {}

LlamaBatch::LlamaBatch(const LlamaBatch& other, const PeerOptions& options)
    : impl_(std::make_unique<Impl>(LlamaContext(other.impl_->context, options), options)) {}

LlamaBatch::~LlamaBatch() = default;
LlamaBatch::LlamaBatch(LlamaBatch&&) noexcept = default;

const PeerOptions& LlamaBatch::options() const {
    return impl_->options;
}

std::vector<std::span<const float>> LlamaBatch::decode(std::span<const Run> runs) {
    std::size_t n_rows = 0;
    for (const Run& run : runs) {
        n_rows += run.tokens.size();
    }
    LlamaRows rows(n_rows);
    std::vector<std::int32_t> last_rows;
    for (const Run& run : runs) {
        rows.add(run.tokens, run.sequence, impl_->rows_of(run.sequence),
                 run.wants_logits ? LlamaRows::Logits::last_row : LlamaRows::Logits::none);
        last_rows.push_back(rows.size() - 1);
    }
    impl_->context.decode(rows);
    std::vector<std::span<const float>> logits;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        impl_->rows_of(runs[i].sequence) += static_cast<int>(runs[i].tokens.size());
        logits.push_back(runs[i].wants_logits ? impl_->context.logits(last_rows[i])
                                              : std::span<const float>());
    }
    return logits;
}

std::span<const float> LlamaBatch::read(int sequence, std::span<const Token> prompt) {
    KNAP_ASSERT(n_rows(sequence) == 0 && !prompt.empty(), "a prompt begins a sequence");
    const auto n_most = static_cast<std::size_t>(impl_->options.n_ubatch);
    std::span<const float> logits;
    for (std::span<const Token> rest = prompt; !rest.empty();) {
        const std::size_t n = std::min(n_most, rest.size());
        const Run run{sequence, rest.first(n), n == rest.size()};
        logits = decode(std::span(&run, 1)).front();
        rest = rest.subspan(n);
    }
    return logits;
}

int LlamaBatch::n_rows(int sequence) const {
    return impl_->rows_of(sequence);
}

void LlamaBatch::clear(int sequence) {
    impl_->context.truncate(sequence, 0);
    impl_->rows_of(sequence) = 0;
}

Token greedy_token(std::span<const float> logits) {
    return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace knap
