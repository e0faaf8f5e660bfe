#include "sampling/ranking.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace knap {

namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();  // only -infinity is lower

// A fixed count, so that the compiler vectorises the comparisons.
constexpr std::size_t kRankingBlock = 64;

bool has_any_from(const float* block, float threshold) {
    int n_found = 0;
    for (std::size_t i = 0; i < kRankingBlock; ++i) {
        n_found += block[i] >= threshold ? 1 : 0;
    }
    return n_found > 0;
}

// Three passes over the logits' bits, lowest first. Each pass is stable, so keys in token order
// need no pass over the tokens. For a whole vocabulary this is several times faster than a
// comparison sort.
void radix_sort_by_logit(std::vector<RankKey>& keys, std::vector<RankKey>& scratch) {
    constexpr int kDigitBits = 11;
    constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
    scratch.resize(keys.size());
    for (int shift = 32; shift < 64; shift += kDigitBits) {
        const auto digit = [shift](RankKey key) { return (key >> shift) % kDigits; };
        std::array<std::uint32_t, kDigits> places{};
        for (RankKey key : keys) {
            ++places[digit(key)];
        }
        std::uint32_t n_before = 0;
        for (std::uint32_t& place : places) {
            n_before += std::exchange(place, n_before);
        }
        for (RankKey key : keys) {
            scratch[places[digit(key)]++] = key;
        }
        keys.swap(scratch);
    }
}

}  // namespace

void Ranking::take_all(std::span<const float> logits) {
    is_in_token_order_ = true;
    keys_.clear();
    keys_.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (logits[i] >= kLowest) {
            keys_.push_back(rank_key(logits[i], static_cast<Token>(i)));
        }
    }
}

// One sweep with a rising threshold. After a few blocks, nearly every further block is skipped as a
// whole.
void Ranking::take_largest(std::span<const float> logits, std::size_t n) {
    is_in_token_order_ = false;
    keys_.clear();
    float threshold = kLowest;
    std::size_t n_tolerated = 2 * n + kRankingBlock;
    for (std::size_t begin = 0; begin < logits.size(); begin += kRankingBlock) {
        const std::size_t end = std::min(begin + kRankingBlock, logits.size());
        if (end - begin == kRankingBlock && !has_any_from(&logits[begin], threshold)) {
            continue;
        }
        for (std::size_t i = begin; i < end; ++i) {
            if (logits[i] >= threshold) {
                keys_.push_back(rank_key(logits[i], static_cast<Token>(i)));
            }
        }
        if (keys_.size() > n_tolerated) {
            threshold = keep_largest(n);
            n_tolerated = std::max(n_tolerated, 2 * keys_.size());  // ties may leave many
        }
    }
    keep_largest(n);
}

void Ranking::take_largest(std::span<const RankKey> tokens, std::size_t n) {
    is_in_token_order_ = false;
    keys_.assign(tokens.begin(), tokens.end());
    keep_largest(n);
}

// Keeps logits at or above the n-th largest, which it returns.
float Ranking::keep_largest(std::size_t n) {
    if (keys_.size() <= n) {
        return kLowest;
    }
    const auto nth = keys_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(keys_.begin(), nth, keys_.end());
    const float smallest = logit_of(*nth);
    std::erase_if(keys_, [smallest](RankKey key) { return logit_of(key) < smallest; });
    return smallest;
}

void Ranking::sort() {
    constexpr std::size_t kWorthCounting = 2048;  // with fewer keys a comparison sort is faster
    if (is_in_token_order_ && keys_.size() >= kWorthCounting) {
        radix_sort_by_logit(keys_, scratch_);
    } else {
        std::sort(keys_.begin(), keys_.end());
    }
    is_in_token_order_ = false;
}

}  // namespace knap
