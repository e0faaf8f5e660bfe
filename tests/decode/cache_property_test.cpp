// After any sequence of rounds, rejections and truncations, the committed rows equal those of plain
// decoding of the same tokens.
#include <random>

#include <gtest/gtest.h>

#include "support/random_cases.h"
#include "support/round_rig.h"
#include "support/tiny_model.h"

namespace knap::test::cache_property_test {
namespace {

constexpr int kOperations = 60;

// One conversation. The model determines its text; the operations that produce it are random.
class Conversation {
  public:
    Conversation(LoadedModel& model, unsigned seed)
        : random_(seed),
          rig_(model, {.capacity = 768}),
          sampler_({}, model.config.n_vocab, 768),
          round_(rig_.forward,
                 rig_.cache,
                 sampler_,
                 {.is_end_of_text = [](Token) { return false; }, .max_rows = 256}),
          plan_(model.config.n_layers) {
        history_ = random_tokens(2 + below(200), model.config.n_vocab, seed);
        rig_.feed(std::span(history_).first(history_.size() - 1));
    }

    void run_round() {
        plan_ = random_plan(random_, plan_.n_layers());
        // Guesses are often wrong, so that their rows remain above the draft.
        const std::vector<Token> guess = random_tokens(below(4), 100, random_());
        const DraftWithPlan how{.plan = &plan_, .stop = {.n_max = below(10)}, .guess = guess};
        const auto outcome = round_.run(history_.back(), {.draft = how});
        n_rejected_ += outcome->tree.n_nodes() - static_cast<int>(outcome->path.size());
        history_.insert(history_.end(), outcome->emitted.begin(), outcome->emitted.end());
    }

    void run_given_tokens() {
        DraftTree tree;
        const int n = below(6);
        for (int i = 0; i < n; ++i) {
            tree.add(below(100), i - 1);
        }
        const auto outcome = round_.run(history_.back(), {.draft = DraftTokens{&tree}});
        history_.insert(history_.end(), outcome->emitted.begin(), outcome->emitted.end());
    }

    // Cuts the text at a random position. Its new last token is pending.
    void truncate() {
        history_.resize(static_cast<std::size_t>(1 + below(static_cast<int>(history_.size()))));
        rig_.cache.truncate(static_cast<int>(history_.size()) - 1);
    }

    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    int n_rejected() const { return n_rejected_; }
    const std::vector<Token>& history() const { return history_; }
    std::vector<std::byte> cache() const { return rig_.cache_bytes(); }

  private:
    std::mt19937 random_;
    ForwardRig rig_;
    Sampler sampler_;
    Round round_;
    ModulePlan plan_;
    std::vector<Token> history_;
    int n_rejected_ = 0;
};

class CacheProperty : public ::testing::TestWithParam<unsigned> {};

TEST_P(CacheProperty, CommittedRowsEqualThoseOfPlainDecoding) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    Conversation conversation(model, GetParam());
    for (int i = 0; i < kOperations; ++i) {
        const int kind = conversation.below(8);
        if (conversation.history().size() > 500 || kind == 0) {
            conversation.truncate();
        } else if (kind == 1) {
            conversation.run_given_tokens();
        } else {
            conversation.run_round();
        }
    }
    EXPECT_GT(conversation.n_rejected(), 0);

    ForwardRig plain(model, {.capacity = 768});
    const std::vector<Token>& history = conversation.history();
    for (std::size_t i = 0; i + 1 < history.size(); ++i) {
        plain.feed(std::span(history).subspan(i, 1));
    }
    EXPECT_EQ(conversation.cache(), plain.cache_bytes());
}

INSTANTIATE_TEST_SUITE_P(Seeds, CacheProperty, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace knap::test::cache_property_test
