#include "tools/peer/llama_drafts.h"

#include <algorithm>
#include <string>

#include "llama-common/log.h"
#include "llama-common/ngram-cache.h"
#include "llama-common/speculative.h"

#include "base/error.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

constexpr llama_seq_id kSequence = 0;

common_speculative_ptr make_speculation(std::string_view name) {
    KNAP_ASSERT(is_peer(name) && name != kPlainPeer, "a peer that drafts");
    // It would write to standard error.
    common_log_set_verbosity_thold(-1);
    common_params_speculative params;
    params.types = {common_speculative_type_from_name(std::string(name))};
    common_speculative_ptr speculation(common_speculative_init(params, /*n_seq=*/1));
    if (speculation == nullptr) {
        fail("llama-common does not know the drafts ", name);
    }
    return speculation;
}

}  // namespace

struct LlamaDrafts::Impl {
    explicit Impl(std::string_view name) : speculation(make_speculation(name)) {}

    common_speculative_ptr speculation;
    // That has rows. One vector for all prompts: after a shorter one `ngram-map-k4v` still compares
    // with places of the one before, which must be in memory.
    llama_tokens text{};
    llama_tokens draft{};
    Token pending = 0;
};

LlamaDrafts::LlamaDrafts(std::string_view name) : impl_(std::make_unique<Impl>(name)) {}

LlamaDrafts::~LlamaDrafts() = default;
LlamaDrafts::LlamaDrafts(LlamaDrafts&&) noexcept = default;

void LlamaDrafts::begin(std::span<const Token> prompt) {
    impl_->text.assign(prompt.begin(), prompt.end());
    common_speculative_begin(impl_->speculation.get(), kSequence, impl_->text);
}

std::span<const Token> LlamaDrafts::draft(Token pending, int n_most) {
    impl_->pending = pending;
    impl_->draft.clear();
    // In a shorter text `ngram-cache` reads before the beginning.
    const bool is_too_short = impl_->text.size() + 1 < LLAMA_NGRAM_MAX;
    if (n_most < 1 || is_too_short) {
        return {};
    }
    common_speculative_get_draft_params(impl_->speculation.get(), kSequence) = {
        .drafting = true,
        .n_max = n_most,
        .pos0 = static_cast<llama_pos>(impl_->text.size()),
        .id_last = pending,
        .prompt = &impl_->text,
        .result = &impl_->draft};
    common_speculative_draft(impl_->speculation.get());
    return impl_->draft;
}

void LlamaDrafts::accept(std::size_t n_accepted) {
    KNAP_ASSERT(n_accepted <= impl_->draft.size(), "only drafted tokens are accepted");
    if (!impl_->draft.empty()) {
        common_speculative_accept(impl_->speculation.get(), kSequence,
                                  static_cast<std::uint16_t>(n_accepted));
    }
    impl_->text.push_back(impl_->pending);
    const auto accepted = std::span(impl_->draft).first(n_accepted);
    impl_->text.insert(impl_->text.end(), accepted.begin(), accepted.end());
}

}  // namespace knap
