#include "decode/kangaroo/kangaroo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/advance.h"
#include "decode/round.h"
#include "support/strategy_rig.h"
#include "support/tiny_adapter.h"

namespace knap::test::kangaroo_kangaroo_test {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr int kExit = 2;
constexpr int kPrompt = 20;

// Rounds after a prompt. With `assumed_rate`, drafts are accepted at random at that rate.
class KangarooRounds {
  public:
    KangarooRounds(StrategyRig& rig, Strategy& strategy, std::optional<double> assumed_rate)
        : rig_(rig),
          strategy_(strategy),
          sampler_({}, rig.model.config.n_vocab, rig.rig.cache.capacity()),
          round_(rig.rig.forward,
                 rig.rig.cache,
                 sampler_,
                 {.acceptance = {.assumed_rate = assumed_rate},
                  .is_end_of_text = [](Token) { return false; },
                  .max_rows = 64}) {
        rig_.rig.cache.truncate(0);
        history_ = random_tokens(kPrompt, rig.model.config.n_vocab, 1);
        const auto logits = *advance(rig_.rig.forward, rig_.rig.cache, history_);
        take(sampler_.sample(logits, kPrompt));
    }

    // Returns nullopt when cancelled.
    std::optional<RoundOutcome> step(int n_room = 64) {
        const auto outcome =
            round_.run(history_.back(), strategy_.propose({.history = history_, .n_room = n_room}));
        if (outcome) {
            strategy_.observe(*outcome);
            for (const Token token : outcome->emitted) {
                take(token);
            }
        }
        return outcome;
    }

    // The tokens that have a row in the target's cache.
    std::span<const Token> text() const {
        return std::span(history_).first(static_cast<std::size_t>(rig_.rig.cache.committed()));
    }
    std::span<const Token> answer() const { return std::span(history_).subspan(kPrompt); }

  private:
    void take(Token token) {
        history_.push_back(token);
        sampler_.accept(token);
    }

    StrategyRig& rig_;
    Strategy& strategy_;
    Sampler sampler_;
    Round round_;
    std::vector<Token> history_;
};

class Kangaroo : public ::testing::Test {
  protected:
    Kangaroo() : rig_(tiny_model("tiny-llama", "Q8_0")) {}

    std::int64_t count_passes(const Forward& forward) const {
        const GraphStatistics& graphs = forward.statistics().graphs;
        return graphs.built + graphs.reused;
    }

    static std::vector<std::byte> rows(const AdapterHead& head, int n) {
        std::vector<std::byte> bytes(head.cache().saved_row_bytes() * static_cast<std::size_t>(n));
        head.cache().read_rows(0, n, bytes.data());
        return bytes;
    }

    // The adapter's rows of a text, computed with a target that has never drafted. The rows after
    // the prompt are computed in one pass.
    std::vector<std::byte> rows_from_scratch(std::span<const Token> text) {
        ForwardRig target(rig_.model);
        AdapterHead head(rig_.adapter_parts);
        const int capture = 2 * kExit;
        target.feed(text.first(kPrompt));
        EXPECT_TRUE(head.follow(text.first(kPrompt), target.forward, target.cache));
        const ForwardResult rest = target.forward.run({.tokens = text.subspan(kPrompt),
                                                       .first_row = kPrompt,
                                                       .captures = std::span(&capture, 1)});
        EXPECT_FALSE(head.logits(rest.captures.front(), kPrompt).empty());
        return rows(head, static_cast<int>(text.size()));
    }

    StrategyRig rig_;
};

TEST_F(Kangaroo, DraftsWithTheFirstLayersAndTheAdapter) {
    KangarooStrategy strategy({}, rig_.parts());
    const auto history = random_tokens(8, 256, 1);
    rig_.rig.feed(std::span(history).first(7));
    const Proposal proposal = strategy.propose({.history = history, .n_room = kMaxDraft});
    const auto& draft = std::get<DraftWithPlan>(proposal.draft);
    EXPECT_EQ(*draft.plan, early_exit_plan(4, kExit));
    EXPECT_EQ(draft.head, &rig_.adapter_head);
    EXPECT_EQ(draft.stop.n_max, 6);
    EXPECT_FLOAT_EQ(draft.stop.exit_confidence, 0.6f);
    EXPECT_EQ(draft.stop.confidence_of, ConfidenceOf::most_probable);
    EXPECT_EQ(draft.width, 1);
    EXPECT_THAT(proposal.captures, ElementsAre(2 * kExit));
}

TEST_F(Kangaroo, IsBuiltFromTheOptions) {
    const auto strategy = make_strategy(
        {.strategy = "kangaroo", .draft_max = 3, .settings = {{"exit-confidence", "0.25"}}},
        rig_.parts());
    const auto history = random_tokens(8, 256, 1);
    rig_.rig.feed(std::span(history).first(7));
    const auto propose = [&](int n_room) {
        return strategy->propose({.history = history, .n_room = n_room}).draft;
    };
    const auto draft = std::get<DraftWithPlan>(propose(kMaxDraft));
    EXPECT_EQ(draft.stop.n_max, 3);
    EXPECT_EQ(draft.stop.exit_confidence, 0.25f);
    EXPECT_EQ(std::get<DraftWithPlan>(propose(2)).stop.n_max, 2);
    EXPECT_TRUE(std::holds_alternative<PlainStep>(propose(0)));
}

TEST_F(Kangaroo, NeedsAnAdapter) {
    StrategyParts parts = rig_.parts();
    parts.adapter = nullptr;
    try {
        make_strategy({.strategy = "kangaroo"}, parts);
        FAIL() << "made without one";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(),
                    StartsWith("`.adapter_path`: expected an adapter trained for the model"));
    }
}

struct Acceptances {
    double rate;
    int n_full;  // rounds of 8 with all drafts accepted; -1: some
};

// With random weights, confidence exits would end most drafts at their first token.
constexpr KangarooOptions kSure{.length = 4, .exit_confidence = 0};

TEST_F(Kangaroo, AdapterRowsMirrorTheTextWhateverIsAccepted) {
    for (const auto& [rate, n_full_expected] : {Acceptances{1.0, 8}, {0.0, 0}, {0.8, -1}}) {
        SCOPED_TRACE(rate);
        KangarooStrategy strategy(kSure, rig_.parts());
        KangarooRounds rounds(rig_, strategy, rate);
        int n_full = 0;
        for (int i = 0; i < 8; ++i) {
            const auto outcome = rounds.step();
            const int n_rows = static_cast<int>(rounds.text().size());
            const bool is_full = outcome->path.size() == kSure.length;
            n_full += is_full ? 1 : 0;
            EXPECT_EQ(rig_.rig.cache.committed(), n_rows);
            EXPECT_EQ(rig_.adapter_head.cache().committed(), is_full ? n_rows - 1 : n_rows);
        }
        if (n_full_expected >= 0) {
            EXPECT_EQ(n_full, n_full_expected);
        } else {
            EXPECT_TRUE(n_full > 0 && n_full < 8) << n_full;
        }
        rounds.step();  // computes the row that may be missing
        EXPECT_EQ(rows(rig_.adapter_head, rig_.adapter_head.cache().committed()),
                  rows_from_scratch(rounds.text().first(
                      static_cast<std::size_t>(rig_.adapter_head.cache().committed()))));
    }
}

TEST_F(Kangaroo, MissingRowCostsNoExtraPass) {
    for (const double rate : {0.0, 1.0}) {
        KangarooStrategy strategy(kSure, rig_.parts());
        KangarooRounds rounds(rig_, strategy, rate);
        rounds.step();
        const std::int64_t n_target = count_passes(rig_.rig.forward);
        const std::int64_t n_adapter = count_passes(rig_.adapter_head.forward());
        rounds.step();
        EXPECT_EQ(count_passes(rig_.adapter_head.forward()) - n_adapter, kSure.length);
        // The first layers run for every draft and for the last draft's own row; the other layers
        // run once.
        EXPECT_EQ(count_passes(rig_.rig.forward) - n_target, kSure.length + 2);
    }
}

TEST_F(Kangaroo, CatchesUpAfterPlainRounds) {
    KangarooStrategy strategy(kSure, rig_.parts());
    KangarooRounds rounds(rig_, strategy, 1.0);
    rounds.step();
    const int n_before = rig_.adapter_head.cache().committed();
    EXPECT_TRUE(rounds.step(/*n_room=*/0)->tree.is_empty());
    EXPECT_TRUE(rounds.step(/*n_room=*/0)->tree.is_empty());
    EXPECT_EQ(rig_.adapter_head.cache().committed(), n_before);
    EXPECT_EQ(rounds.step()->path.size(), kSure.length);
    EXPECT_EQ(rig_.adapter_head.cache().committed() + 1, rig_.rig.cache.committed());
}

TEST_F(Kangaroo, UncertainTokenIsKeptAndEndsTheDraft) {
    KangarooStrategy strategy({.length = 6, .exit_confidence = 1}, rig_.parts());
    KangarooRounds rounds(rig_, strategy, std::nullopt);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(rounds.step()->tree.n_nodes(), 1) << "random weights are never sure";
    }
}

TEST_F(Kangaroo, CancelledRoundsChangeNothing) {
    KangarooStrategy strategy(kSure, rig_.parts());
    KangarooRounds rounds(rig_, strategy, 1.0);
    for (int i = 0; i < 4; ++i) {
        rounds.step();
        int n_left = 50 * (i + 1);  // polls: ends in the draft, later in its verification
        rig_.model.backend.set_abort([&] { return --n_left <= 0; });
        const int n_rows = rig_.rig.cache.committed();
        ASSERT_FALSE(rounds.step().has_value()) << "within " << 50 * (i + 1) << " polls";
        EXPECT_EQ(rig_.rig.cache.committed(), n_rows);
        rig_.model.backend.set_abort({});
    }
    rounds.step();
    const std::vector<Token> answer(rounds.answer().begin(), rounds.answer().end());
    const auto found = rows(rig_.adapter_head, rig_.adapter_head.cache().committed());
    AdapterHead other_head(rig_.adapter_parts);
    StrategyParts other_parts = rig_.parts();
    other_parts.adapter = &other_head;
    KangarooStrategy unbroken(kSure, other_parts);
    KangarooRounds other(rig_, unbroken, 1.0);
    for (int i = 0; i < 5; ++i) {
        other.step();
    }
    EXPECT_EQ(answer, std::vector<Token>(other.answer().begin(), other.answer().end()));
    EXPECT_EQ(found, rows(other_head, other_head.cache().committed()));
}

// An adapter that adds nothing and has the model's own norm, which makes a plain early exit.
std::filesystem::path neutral_adapter(const LoadedModel& model) {
    TinyGguf file = tiny_adapter({.exit_layer = kExit});
    auto& output = file.tensor("blk.0.attn_output.weight").values;
    output.assign(output.size(), 0.0f);
    const ggml_tensor* norm = model.weights->tensors().output_norm;
    const auto* values = static_cast<const float*>(norm->data);
    file.tensor("output_norm.weight").values.assign(values, values + model.config.n_embd);
    return write_tiny(file, "neutral-adapter.gguf");
}

TEST_F(Kangaroo, EqualsAStaticEarlyExitWhenTheAdapterAddsNothing) {
    StrategyRig neutral(tiny_model("tiny-llama", "Q8_0"), {}, neutral_adapter(rig_.model));
    KangarooStrategy kangaroo(kSure, neutral.parts());
    const auto exit = make_strategy(
        {.strategy = "static", .draft_max = kSure.length, .settings = {{"plan", "exit=2"}}},
        rig_.parts());
    KangarooRounds with_adapter(neutral, kangaroo, std::nullopt);
    KangarooRounds without(rig_, *exit, std::nullopt);
    for (int i = 0; i < 12; ++i) {
        const auto expected = without.step();
        const auto found = with_adapter.step();
        ASSERT_THAT(found->tree.tokens(), ::testing::ElementsAreArray(expected->tree.tokens()));
        ASSERT_THAT(found->emitted, ::testing::ElementsAreArray(expected->emitted));
    }
}

}  // namespace
}  // namespace knap::test::kangaroo_kangaroo_test
