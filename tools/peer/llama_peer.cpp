#include "tools/peer/llama_peer.h"

#include "tools/peer/llama_context.h"

namespace knap {

struct LlamaPeer::Impl {
    Impl(const std::filesystem::path& path, const PeerOptions& options)
        : context(path, options), n_ctx(options.n_ctx) {}

    LlamaContext context;
    int n_ctx;
    int n_rows = 0;
};

LlamaPeer::LlamaPeer(const std::filesystem::path& path, const PeerOptions& options)
    : impl_(std::make_unique<Impl>(path, options)) {}

LlamaPeer::~LlamaPeer() = default;
LlamaPeer::LlamaPeer(LlamaPeer&&) noexcept = default;

std::vector<std::span<const float>> LlamaPeer::feed(std::span<const Token> tokens, Logits wanted) {
    LlamaRows batch(tokens.size());
    batch.add(
        tokens, 0, impl_->n_rows,
        wanted == Logits::every_row ? LlamaRows::Logits::every_row : LlamaRows::Logits::last_row);
    impl_->context.decode(batch);
    impl_->n_rows += static_cast<int>(tokens.size());
    std::vector<std::span<const float>> rows;
    for (std::int32_t row = 0; row < batch.size(); ++row) {
        if (batch.has_logits(row)) {
            rows.push_back(impl_->context.logits(row));
        }
    }
    return rows;
}

void LlamaPeer::truncate(int n_rows) {
    impl_->context.truncate(0, n_rows);
    impl_->n_rows = n_rows;
}

int LlamaPeer::n_rows() const {
    return impl_->n_rows;
}

int LlamaPeer::n_ctx() const {
    return impl_->n_ctx;
}

}  // namespace knap
