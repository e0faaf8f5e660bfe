#include "decode/copies/suffix_index.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"

namespace knap {

namespace {

// Half of a block is moved by an insertion, and a block is split when it is full.
constexpr std::size_t kMaxBlock = 256;
// After all places with equal tokens before them.
constexpr auto kAfterEquals = std::numeric_limits<std::uint32_t>::max();

// The token `distance` before the end of `text`; an end mark before its beginning, so that texts
// begin alike wherever they are.
Token back(std::span<const Token> text, std::size_t distance) {
    return distance < text.size() ? text[text.size() - 1 - distance] : SuffixIndex::kEndMark;
}

// How many tokens at the ends of two texts are equal, up to `limit` and up to an end mark.
int common_end(std::span<const Token> a, std::span<const Token> b, int limit) {
    int length = 0;
    while (length < limit) {
        const Token token = back(a, static_cast<std::size_t>(length));
        if (token == SuffixIndex::kEndMark || token != back(b, static_cast<std::size_t>(length))) {
            break;
        }
        ++length;
    }
    return length;
}

}  // namespace

void SuffixIndex::append(std::span<const Token> tokens) {
    for (const Token token : tokens) {
        text_.push_back(token);
        insert(static_cast<Place>(text_.size() - 1));
    }
}

void SuffixIndex::end_text() {
    text_.push_back(kEndMark);
}

void SuffixIndex::truncate(std::size_t n_tokens) {
    while (text_.size() > n_tokens) {
        if (text_.back() != kEndMark) {
            erase(static_cast<Place>(text_.size() - 1));
        }
        text_.pop_back();
    }
}

// What comes before a place never reaches into another text, so the order of the others stays.
void SuffixIndex::drop_first_text() {
    const auto mark = std::ranges::find(text_, kEndMark);
    KNAP_ASSERT(mark != text_.end(), "the oldest text has ended");
    const auto n_dropped = static_cast<Place>(mark - text_.begin() + 1);
    for (Block& block : blocks_) {
        std::erase_if(block, [&](Place place) { return place < n_dropped; });
        for (Place& place : block) {
            place -= n_dropped;
        }
    }
    std::erase_if(blocks_, [](const Block& block) { return block.empty(); });
    text_.erase(text_.begin(), mark + 1);
}

void SuffixIndex::drop_last_text() {
    KNAP_ASSERT(!text_.empty() && text_.back() == kEndMark, "the newest text has ended");
    text_.pop_back();
    const auto last_mark = std::find(text_.rbegin(), text_.rend(), kEndMark);
    truncate(static_cast<std::size_t>(text_.rend() - last_mark));
}

void SuffixIndex::clear() {
    text_.clear();
    blocks_.clear();
}

// Places with the same tokens before them are in the order of the text.
bool SuffixIndex::is_before(Place place, std::span<const Token> tail, Place of_equals) const {
    const std::span<const Token> own = before(place);
    const int length = common_end(own, tail, kLongestMatch);
    const auto distance = static_cast<std::size_t>(length);
    if (length < kLongestMatch && back(own, distance) != back(tail, distance)) {
        return back(own, distance) < back(tail, distance);
    }
    return place < of_equals;
}

SuffixIndex::Spot SuffixIndex::spot_of(std::span<const Token> tail, Place of_equals) const {
    const auto is_earlier = [&](Place place) { return is_before(place, tail, of_equals); };
    const auto block = std::ranges::partition_point(
        blocks_, [&](const Block& candidate) { return is_earlier(candidate.back()); });
    const auto i_block = static_cast<std::size_t>(block - blocks_.begin());
    if (block == blocks_.end()) {
        return {.block = i_block, .index = 0};
    }
    const auto place = std::ranges::partition_point(*block, is_earlier);
    return {.block = i_block, .index = static_cast<std::size_t>(place - block->begin())};
}

void SuffixIndex::insert(Place place) {
    Spot spot = spot_of(before(place), place);
    if (spot.block == blocks_.size()) {  // after all others
        if (blocks_.empty()) {
            blocks_.emplace_back();
        }
        spot = {.block = blocks_.size() - 1, .index = blocks_.back().size()};
    }
    Block& block = blocks_[spot.block];
    block.insert(block.begin() + static_cast<std::ptrdiff_t>(spot.index), place);
    if (block.size() == kMaxBlock) {
        Block second(block.begin() + kMaxBlock / 2, block.end());
        block.resize(kMaxBlock / 2);
        blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(spot.block) + 1,
                       std::move(second));
    }
}

void SuffixIndex::erase(Place place) {
    const Spot spot = spot_of(before(place), place);
    Block& block = blocks_[spot.block];
    KNAP_ASSERT(block[spot.index] == place, "every token has its place in the order");
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(spot.index));
    if (block.empty()) {
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(spot.block));
    }
}

// From the spot where the tail belongs, matches get shorter in both directions.
void SuffixIndex::find(std::span<const Token> tail,
                       int min_length,
                       std::size_t n_most,
                       std::vector<Match>& matches) const {
    matches.clear();
    const Spot spot = spot_of(tail, kAfterEquals);
    Spot left = spot;
    Spot right = spot;
    const auto match_at = [&](const Spot& at) {
        const Place place = blocks_[at.block][at.index];
        return Match{.next = place, .length = common_end(before(place), tail, kLongestMatch)};
    };
    const auto step_left = [&]() -> std::optional<Match> {
        if (left.index == 0) {
            if (left.block == 0) {
                return std::nullopt;
            }
            --left.block;
            left.index = blocks_[left.block].size();
        }
        --left.index;
        return match_at(left);
    };
    const auto look_right = [&]() -> std::optional<Match> {
        if (right.block < blocks_.size() && right.index == blocks_[right.block].size()) {
            right = {.block = right.block + 1, .index = 0};
        }
        return right.block < blocks_.size() ? std::optional(match_at(right)) : std::nullopt;
    };
    auto before_it = step_left();
    auto after_it = look_right();
    const auto length_of = [](const std::optional<Match>& m) { return m ? m->length : 0; };
    while (matches.size() < n_most) {
        const bool takes_left = length_of(before_it) >= length_of(after_it);
        auto& next = takes_left ? before_it : after_it;
        if (length_of(next) < min_length) {
            break;
        }
        matches.push_back(*next);
        if (takes_left) {
            next = step_left();
        } else {
            ++right.index;
            next = look_right();
        }
    }
    std::ranges::sort(matches, [](const Match& a, const Match& b) {
        return a.length != b.length ? a.length > b.length : a.next > b.next;
    });
}

std::size_t SuffixIndex::n_bytes() const {
    std::size_t n = text_.capacity() * sizeof(Token) + blocks_.capacity() * sizeof(Block);
    for (const Block& block : blocks_) {
        n += block.capacity() * sizeof(Place);
    }
    return n;
}

}  // namespace knap
