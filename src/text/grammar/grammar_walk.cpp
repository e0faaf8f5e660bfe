#include "text/grammar/grammar_walk.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "text/utf8.h"

namespace knap {
namespace {

// A text is guessed as far as it is reached with this probability. A row of a pass costs about a
// third of a step, so a longer guess would not pay.
constexpr double kLeastProbability = 0.4;
// Of a byte without choice: other tokens than the usual ones may spell it.
constexpr double kByteProbability = 0.995;
// Of white space that has begun as it was guessed.
constexpr double kBegunProbability = 0.9;
// Grammars with more ways to go on than this are not followed.
constexpr std::size_t kMaxPlaces = 256;
constexpr int kMaxTried = 4096;
constexpr int kMaxRules = 512;  // within each other
// Nor are texts that nest deeper: rests that hold each other are freed one inside the other, which
// takes stack for each.
constexpr int kMaxNested = 1024;

bool is_opening(char32_t character) {
    return character == U'{' || character == U'[';
}

bool is_closing(char32_t character) {
    return character == U'}' || character == U']';
}

}  // namespace

GrammarWalk::GrammarWalk(std::shared_ptr<const GrammarRules> rules) : rules_(std::move(rules)) {
    for (const std::uint32_t start : rules_->alternatives(rules_->root())) {
        add({start, nullptr}, 0, here_);
    }
    enter_gap(here_);
}

const CharacterSet& GrammarWalk::set_at(const Place& place) const {
    return rules_->set(rules_->element(place.element).index);
}

bool GrammarWalk::are_alike(const Rest& a, const Rest& b) {
    const Rest* one = &a;
    const Rest* other = &b;
    while (one != other && one != nullptr && other != nullptr) {
        if (one->element != other->element) {
            return false;
        }
        one = one->after.get();
        other = other->after.get();
    }
    return one == other;
}

// Adds the places at characters that `rest` begins with.
void GrammarWalk::add(Rest rest, int n_rules, Step& step) const {
    using Kind = GrammarRules::Element::Kind;
    while (rules_->element(rest.element).kind == Kind::end) {
        if (rest.after == nullptr) {
            step.may_end = true;
            return;
        }
        rest = Rest(*rest.after);
    }
    const GrammarRules::Element element = rules_->element(rest.element);
    if (element.kind == Kind::characters) {
        const bool is_known = std::ranges::any_of(
            step.places, [&](const Place& place) { return are_alike(place, rest); });
        if (!is_known && step.places.size() <= kMaxPlaces) {
            step.places.push_back(std::move(rest));
        }
        return;
    }
    if (n_rules == kMaxRules || ++step.n_tried > kMaxTried) {
        return;
    }
    // A rule at the end of a sequence needs no way back to it.
    const bool is_last = rules_->element(rest.element + 1).kind == Kind::end;
    const int n_after = rest.after == nullptr ? 0 : rest.after->n_after + 1;
    if (n_after > kMaxNested) {
        step.n_tried = kMaxTried + 1;
        return;
    }
    const auto after =
        is_last ? rest.after
                : std::make_shared<const Rest>(Rest{rest.element + 1, rest.after, n_after});
    for (const std::uint32_t start : rules_->alternatives(element.index)) {
        add({start, after}, n_rules + 1, step);
    }
}

GrammarWalk::Next GrammarWalk::next_of(const Step& step) const {
    Next next{.is_open = step.may_end};
    bool has_blanks = false;  // several
    for (const Place& place : step.places) {
        const CharacterSet& set = set_at(place);
        if (set.is_white_space()) {
            has_blanks |= !set.only() || (next.has_white_space && next.blank != set.only());
            next.has_white_space = true;
            next.blank = set.only();
        } else {
            next.is_open |= !set.only() || (next.only && next.only != set.only());
            next.only = set.only();
        }
    }
    if (has_blanks) {
        next.blank.reset();
    }
    return next;
}

// False: the character does not fit.
bool GrammarWalk::take(char32_t character, Step& step) const {
    const std::vector<Place> places = std::exchange(step.places, {});
    step.may_end = false;
    step.n_tried = 0;
    bool is_literal = true;
    for (const Place& place : places) {
        if (set_at(place).contains(character)) {
            is_literal &= set_at(place).only().has_value();
            add({place.element + 1, place.after}, 0, step);
        }
    }
    if (step.places.size() > kMaxPlaces || step.n_tried > kMaxTried) {
        step.places.clear();
    }
    if (is_literal) {
        step.depth += is_opening(character) ? 1 : is_closing(character) ? -1 : 0;
    }
    step.last = character;
    return !step.places.empty() || step.may_end;
}

// Where white space may come but need not, a gap begins.
void GrammarWalk::enter_gap(Step& step) const {
    const Next next = next_of(step);
    if (step.gap || !next.has_white_space || (!next.only && !next.is_open)) {
        return;
    }
    std::uint64_t place = 0;
    for (const Place& one : step.places) {
        place = mix_in(place, one.element);
    }
    step.gap = Gap{.place = place, .before = step.last, .depth = step.depth};
    step.gap_text.clear();
}

void GrammarWalk::advance(std::string_view bytes) {
    cut_ += bytes;
    std::size_t n_read = 0;
    while (n_read < cut_.size()) {
        const std::string_view rest = std::string_view(cut_).substr(n_read);
        const Utf8Sequence sequence = first_utf8_sequence(rest);
        if (sequence.kind == Utf8Kind::cut) {
            break;
        }
        const char32_t character = code_point(rest.substr(0, sequence.n_bytes));
        n_read += sequence.n_bytes;
        if (here_.gap && is_white_space(character)) {
            here_.gap_text += static_cast<char>(character);
        } else if (here_.gap) {
            white_space_.learn(*here_.gap, character, here_.gap_text);
            here_.gap.reset();
        }
        take(character, here_);
        enter_gap(here_);
    }
    cut_.erase(0, n_read);
}

std::string GrammarWalk::likely_text(std::size_t max_bytes) const {
    std::string text;
    double probability = cut_.empty() ? 1 : 0;
    Step step = here_;
    while (text.size() < max_bytes && probability >= kLeastProbability) {
        const Next next = next_of(step);
        if (next.is_open || (!next.only && !next.blank)) {
            break;
        }
        if (next.has_white_space && next.only && step.gap) {
            WhiteSpace::Guess guess = white_space_.guess(*step.gap, *next.only);
            const bool has_begun = !step.gap_text.empty();
            const bool goes_on = guess.text.starts_with(step.gap_text);
            probability *= has_begun && goes_on ? std::max(guess.probability, kBegunProbability)
                                                : guess.probability;
            if (probability < kLeastProbability) {
                break;
            }
            if (goes_on && !append(guess.text.substr(step.gap_text.size()), step, text)) {
                break;
            }
        }
        const char32_t character = next.only ? *next.only : *next.blank;
        step.gap.reset();
        if (!take(character, step)) {
            break;
        }
        text += utf8_of(character);
        probability *= kByteProbability;
        enter_gap(step);
    }
    text.resize(whole_utf8_length(std::string_view(text).substr(0, max_bytes)));
    return text;
}

// False: it does not fit.
bool GrammarWalk::append(std::string_view white_space, Step& step, std::string& text) const {
    for (const char byte : white_space) {
        if (!take(static_cast<unsigned char>(byte), step)) {
            return false;
        }
        text += byte;
    }
    return true;
}

}  // namespace knap
