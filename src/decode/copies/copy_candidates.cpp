#include "decode/copies/copy_candidates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>

namespace knap {

namespace {

// A longer match says little more than this.
constexpr int kLongestVote = 16;

struct Choice {
    Token token;
    double n_votes;
    std::size_t n_matches;
    int length;
};

// A match counts twice as much as one that is a token shorter, and as the next one of its length:
// where a text exists in several versions, it mostly goes on like the latest.
class Votes {
  public:
    double of(const Match& match) {
        const int length = std::min(match.length, kLongestVote);
        n_before_ = length == length_ ? n_before_ + 1 : 0;
        length_ = length;
        return std::ldexp(1.0, length - n_before_);
    }

  private:
    int length_ = 0;
    int n_before_ = 0;  // matches of this length
};

// At most as many as matches.
std::vector<Choice> count_votes(std::span<const Match> matches, std::span<const Token> path) {
    std::vector<Choice> choices;
    Votes votes;
    for (const Match& match : matches) {
        const double n_votes = votes.of(match);
        const auto token = token_after(match, path);
        if (!token) {
            continue;
        }
        auto choice = std::ranges::find(choices, *token, &Choice::token);
        if (choice == choices.end()) {
            choices.push_back({.token = *token, .n_votes = 0, .n_matches = 0, .length = 0});
            choice = choices.end() - 1;
        }
        choice->n_votes += n_votes;
        ++choice->n_matches;
        choice->length = std::max(choice->length, match.length);
    }
    std::ranges::stable_sort(choices, std::ranges::greater(), &Choice::n_votes);
    return choices;
}

CopyEvidence::Standing standing_of(bool is_first, double share, std::size_t n_matches) {
    using enum CopyEvidence::Standing;
    if (!is_first) {
        return share >= CopyEvidence::kNoticedShare ? second : rare;
    }
    if (share < CopyEvidence::kClearShare) {
        return contested;
    }
    return share == 1 && n_matches > 1 ? agreed : leading;
}

}  // namespace

std::optional<Token> token_after(const Match& match, std::span<const Token> path) {
    const auto text = match.index->text();
    const bool is_known = match.next < text.size() || match.next - text.size() < path.size();
    if (!is_known) {
        return std::nullopt;
    }
    const Token token =
        match.next < text.size() ? text[match.next] : path[match.next - text.size()];
    return token == SuffixIndex::kEndMark ? std::nullopt : std::optional(token);
}

void rank_candidates(std::span<const Match> matches,
                     std::span<const Token> path,
                     std::size_t n_most,
                     std::vector<CopyCandidate>& candidates) {
    const std::vector<Choice> choices = count_votes(matches, path);
    double n_votes = 0;
    for (const Choice& choice : choices) {
        n_votes += choice.n_votes;
    }
    candidates.clear();
    for (const Choice& choice : std::span(choices).first(std::min(n_most, choices.size()))) {
        const double share = choice.n_votes / n_votes;
        candidates.push_back(
            {.token = choice.token,
             .evidence = {.length = choice.length,
                          .standing = standing_of(candidates.empty(), share, choice.n_matches)}});
        std::ranges::copy_if(
            matches, std::back_inserter(candidates.back().matches),
            [&](const Match& match) { return token_after(match, path) == choice.token; });
    }
}

}  // namespace knap
