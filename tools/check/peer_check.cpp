#include "tools/check/peer_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/engine_impl.h"
#include "tools/check/direct_pass.h"
#include "tools/check/top_logits.h"
#include "tools/peer/llama_peer.h"

namespace knap {
namespace {

// Small, so that the logits of all rows of a pass take little memory on both sides.
constexpr int kPassRows = 32;
constexpr std::size_t kMaxTokens = 512;  // per prompt

struct TopTwo {
    std::size_t best = 0;
    float gap = 0;  // to the second best
};

TopTwo top_two(std::span<const float> logits) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
    float second = -INFINITY;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        second = i == best ? second : std::max(second, logits[i]);
    }
    return {best, logits[best] - second};
}

// Accumulates the differences between rows and their reference rows.
class DistanceSum {
  public:
    void add(std::span<const float> row, std::span<const float> reference);
    LogitDistance mean() const;

  private:
    LogitDistance sum_;  // holds sums where the result has means and shares
    double n_rows_ = 0;
    double n_logits_ = 0;
};

void DistanceSum::add(std::span<const float> row, std::span<const float> reference) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double difference = std::abs(double{row[i]} - double{reference[i]});
        sum_.max_difference = std::max(sum_.max_difference, difference);
        sum_.mean_difference += difference;
    }
    sum_.max_gap_change = std::max(sum_.max_gap_change, TopLogits(reference).gap_change(row));
    const TopTwo expected = top_two(reference);
    if (top_two(row).best == expected.best) {
        ++sum_.equal_choices;
    } else {
        sum_.max_gap_of_unequal = std::max(sum_.max_gap_of_unequal, double{expected.gap});
    }
    n_logits_ += static_cast<double>(row.size());
    ++n_rows_;
}

LogitDistance DistanceSum::mean() const {
    LogitDistance result = sum_;
    result.mean_difference /= std::max(n_logits_, 1.0);
    result.equal_choices /= std::max(n_rows_, 1.0);
    return result;
}

std::span<const Token> compared_tokens(const CheckPrompt& prompt) {
    return std::span(prompt.tokens).first(std::min(prompt.tokens.size(), kMaxTokens));
}

std::size_t count_tokens(std::span<const CheckPrompt> prompts) {
    std::size_t n = 0;
    for (const CheckPrompt& prompt : prompts) {
        n += compared_tokens(prompt).size();
    }
    return n;
}

LlamaPeer make_peer(Engine::Impl& engine, bool flash_attention) {
    return LlamaPeer(engine.config.model_path, {.n_ctx = kMaxTokens,
                                                .n_ubatch = kPassRows,
                                                .n_threads = engine.config.n_threads,
                                                .flash_attention = flash_attention,
                                                .beside = &engine.head_backend()});
}

// Computes the same text three times, pass by pass: ours, libllama, libllama with flash attention.
class Comparison {
  public:
    explicit Comparison(Engine::Impl& engine)
        : ours_(engine, kMaxTokens, kPassRows),
          reference_(make_peer(engine, /*flash_attention=*/false)),
          flash_(make_peer(engine, /*flash_attention=*/true)) {}

    void restart() {
        ours_.restart();
        reference_.truncate(0);
        flash_.truncate(0);
    }
    void feed(std::span<const Token> tokens);
    PeerReport report() const {
        return {.n_rows = n_rows_, .ours = of_ours_.mean(), .flash = of_flash_.mean()};
    }
    int n_rows() const { return n_rows_; }

  private:
    DirectPass ours_;
    LlamaPeer reference_;
    LlamaPeer flash_;
    DistanceSum of_ours_;
    DistanceSum of_flash_;
    int n_rows_ = 0;
};

void Comparison::feed(std::span<const Token> tokens) {
    const auto ours = ours_.feed(tokens);  // [n_vocab, n_rows]
    const auto reference = reference_.feed(tokens, LlamaPeer::Logits::every_row);
    const auto flash = flash_.feed(tokens, LlamaPeer::Logits::every_row);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        const std::size_t n_vocab = reference[row].size();
        of_ours_.add(ours.subspan(row * n_vocab, n_vocab), reference[row]);
        of_flash_.add(flash[row], reference[row]);
    }
    n_rows_ += static_cast<int>(tokens.size());
}

}  // namespace

std::optional<PeerReport> check_against_libllama(Engine& engine,
                                                 std::span<const CheckPrompt> prompts,
                                                 const CheckObserver& observer) {
    const auto n_total = static_cast<double>(count_tokens(prompts));
    Comparison comparison(impl_of(engine));
    for (const CheckPrompt& prompt : prompts) {
        comparison.restart();
        for (auto left = compared_tokens(prompt); !left.empty();) {
            if (observer.cancelled()) {
                return std::nullopt;
            }
            const auto n = std::min(left.size(), std::size_t{kPassRows});
            comparison.feed(left.first(n));
            left = left.subspan(n);
            observer.progress(comparison.n_rows() / n_total);
        }
    }
    return comparison.report();
}

}  // namespace knap
