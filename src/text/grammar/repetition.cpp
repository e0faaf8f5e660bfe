#include "text/grammar/repetition.h"

#include <vector>

namespace knap {
namespace {

using Element = GrammarRules::Element;
using Sequence = GrammarRules::Sequence;

// Counts are written to this base: blocks of 1, 32, 1024, ... items. While a text is inside a
// repetition, every size of block is one more way to go on.
constexpr std::uint32_t kBase = 32;
// Up to here an item stands as often as it may come, so that there is one way to go on only.
constexpr std::uint32_t kMaxWrittenOut = 64;

Element reference(std::uint32_t rule) {
    return {Element::Kind::rule, rule};
}

class Repeater {
  public:
    Repeater(const Sequence& item, std::uint32_t largest, GrammarRules& rules)
        : rules_(rules), base_(largest <= kMaxWrittenOut ? largest + 1 : kBase) {
        blocks_.push_back(item.size() == 1 ? item.front() : reference(rule_of({item})));
    }

    Sequence exactly(std::uint32_t n) {
        Sequence sequence;
        for (std::size_t level = 0; n > 0; ++level, n /= base_) {
            sequence.insert(sequence.begin(), n % base_, block(level));
        }
        return sequence;
    }

    // With d blocks of a size that fits n: fewer than d of them and less than another one, or d and
    // at most the rest of n. So the number of items tells the way that was taken.
    Sequence at_most(std::uint32_t n) {
        Sequence all;     // the rest of n, of the sizes so far
        Sequence less{};  // less than one block
        for (std::size_t level = 0; n > 0; ++level, n /= base_) {
            all = blocks_or_less(n % base_, level, all, less);
            if (n >= base_) {
                less = blocks_or_less(base_ - 1, level, less, less);
            }
        }
        return all;
    }

    Sequence any_number() {
        const std::uint32_t rule = rules_.new_rule();
        rules_.add_alternative(rule, {blocks_[0], reference(rule)});
        rules_.add_alternative(rule, {});
        return {reference(rule)};
    }

  private:
    std::uint32_t rule_of(const std::vector<Sequence>& alternatives) {
        const std::uint32_t rule = rules_.new_rule();
        for (const Sequence& alternative : alternatives) {
            rules_.add_alternative(rule, alternative);
        }
        return rule;
    }

    // base^level items.
    Element block(std::size_t level) {
        while (blocks_.size() <= level) {
            blocks_.push_back(reference(rule_of({Sequence(base_, blocks_.back())})));
        }
        return blocks_[level];
    }

    // n blocks and `last`, or fewer and `less`.
    Sequence blocks_or_less(std::uint32_t n,
                            std::size_t level,
                            const Sequence& last,
                            const Sequence& less) {
        Sequence rest = last;
        for (std::uint32_t i = 0; i < n; ++i) {
            rest.insert(rest.begin(), block(level));
            rest = {reference(rule_of({rest, less}))};
        }
        return rest;
    }

    GrammarRules& rules_;
    std::uint32_t base_;
    std::vector<Element> blocks_;
};

}  // namespace

Sequence repeated(const Sequence& item, const Repetition& repetition, GrammarRules& rules) {
    const auto [least, most] = repetition;
    if (least == 1 && most == 1) {
        return item;
    }
    Repeater repeater(item, most.value_or(least), rules);
    Sequence sequence = repeater.exactly(least);
    const Sequence rest = most ? repeater.at_most(*most - least) : repeater.any_number();
    sequence.insert(sequence.end(), rest.begin(), rest.end());
    return sequence;
}

}  // namespace knap
