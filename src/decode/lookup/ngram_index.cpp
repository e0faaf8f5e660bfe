#include "decode/lookup/ngram_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace knap {

namespace {

// Large enough that an ordinary request does not grow the table; 32 KiB each.
constexpr std::size_t kInitialSlots = 8192;

std::span<const Token> run_before(std::span<const Token> text,
                                  std::size_t end,
                                  std::size_t length) {
    return text.subspan(end - length, length);
}

std::uint64_t hash(std::span<const Token> run) {
    std::uint64_t state = 0;
    for (const Token token : run) {
        state = mix_in(state, static_cast<std::uint32_t>(token));
    }
    return state;
}

// Counts the tokens before index `place` that equal those at the end of the text; `known` of them
// are known to be equal.
int count_match(std::span<const Token> text, std::size_t place, std::size_t known) {
    const std::size_t limit =
        std::min(std::max(known, std::size_t{NgramIndex::kLongestMatch}), place);
    std::size_t length = known;
    while (length < limit && text[place - 1 - length] == text[text.size() - 1 - length]) {
        ++length;
    }
    return static_cast<int>(length);
}

}  // namespace

NgramTable::NgramTable(int length)
    : length_(static_cast<std::size_t>(length)), slots_(kInitialSlots) {}

void NgramTable::insert(std::span<const Token> text, std::size_t end) {
    std::uint32_t& slot = slots_[slot_of(text, end)];
    const bool is_new = slot == 0;
    slot = static_cast<std::uint32_t>(end);
    if (is_new && 2 * ++n_used_ > slots_.size()) {
        grow(text);
    }
}

std::size_t NgramTable::find(std::span<const Token> text, std::size_t end) const {
    return slots_[slot_of(text, end)];
}

void NgramTable::clear() {
    std::ranges::fill(slots_, 0);
    n_used_ = 0;
}

std::size_t NgramTable::slot_of(std::span<const Token> text, std::size_t end) const {
    const auto run = run_before(text, end, length_);
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(run) & mask;
    while (slots_[slot] != 0 && !std::ranges::equal(run_before(text, slots_[slot], length_), run)) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

void NgramTable::grow(std::span<const Token> text) {
    std::vector<std::uint32_t> places(2 * slots_.size());
    places.swap(slots_);
    for (const std::uint32_t place : places) {
        if (place != 0) {
            slots_[slot_of(text, place)] = place;
        }
    }
}

NgramIndex::NgramIndex(int min_length, int max_length) {
    KNAP_ASSERT(1 <= min_length && min_length <= max_length,
                "run lengths are positive and in order");
    for (int length = max_length; length >= min_length; --length) {
        tables_.emplace_back(length);
    }
}

void NgramIndex::append(std::span<const Token> tokens) {
    for (const Token token : tokens) {
        // The run at the end of the text is indexed only when a token follows it, so find_end()
        // never finds the end itself.
        for (NgramTable& table : tables_) {
            if (table.length() <= text_.size()) {
                table.insert(text_, text_.size());
            }
        }
        text_.push_back(token);
    }
}

void NgramIndex::clear() {
    text_.clear();
    for (NgramTable& table : tables_) {
        table.clear();
    }
}

std::optional<NgramIndex::Match> NgramIndex::find_end() const {
    for (const NgramTable& table : tables_) {
        const bool has_run = table.length() <= text_.size();
        const std::size_t next = has_run ? table.find(text_, text_.size()) : 0;
        if (next != 0) {
            return Match{.length = count_match(text_, next, table.length()), .next = next};
        }
    }
    return std::nullopt;
}

}  // namespace knap
