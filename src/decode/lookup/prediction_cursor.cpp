#include "decode/lookup/prediction_cursor.h"

#include <algorithm>

#include "decode/lookup/ngram_index.h"

namespace knap {
namespace {

// Tokens that must agree for the answer to be found again.
constexpr std::size_t kLeastMatch = 2;

}  // namespace

void PredictionCursor::begin(std::span<const Token> prediction) {
    prediction_.assign(prediction.begin(), prediction.end());
    answer_.clear();
    place_ = 0;
    match_length_ = NgramIndex::kLongestMatch;
}

void PredictionCursor::accept(Token token) {
    if (prediction_.empty()) {
        return;
    }
    answer_.push_back(token);
    const auto expected = next();
    if (!expected.empty() && expected.front() == token) {
        ++place_;
        match_length_ = std::min(match_length_ + 1, NgramIndex::kLongestMatch);
    } else {
        find_again();
    }
}

std::span<const Token> PredictionCursor::next() const {
    return match_length_ == 0 ? std::span<const Token>()
                              : std::span<const Token>(prediction_).subspan(place_);
}

// An edit inserts, removes or replaces a few tokens, so places nearby are tried first.
void PredictionCursor::find_again() {
    match_length_ = 0;
    for (std::size_t distance = 0; distance <= prediction_.size(); ++distance) {
        for (const std::size_t place : {place_ + distance, place_ - distance}) {
            // Below 0 wraps around to a large number.
            if (place <= prediction_.size() && agreeing_before(place) >= kLeastMatch) {
                place_ = place;
                match_length_ = static_cast<int>(agreeing_before(place));
                return;
            }
        }
    }
}

std::size_t PredictionCursor::agreeing_before(std::size_t place) const {
    const std::size_t most =
        std::min({place, answer_.size(), std::size_t{NgramIndex::kLongestMatch}});
    std::size_t n = 0;
    while (n < most && prediction_[place - 1 - n] == answer_[answer_.size() - 1 - n]) {
        ++n;
    }
    return n;
}

}  // namespace knap
