// Copies of the conversation, of references and of a prediction, as chains and as trees: whatever
// they say, the text is plain decoding's. Rows are almost free on the eager profile, so trees pay.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/trained_model.h"

namespace knap::test::runtime_copies_test {
namespace {

using Tokens = std::vector<Token>;

const SpeculationOptions kCopies{.strategy = "knapspec",
                                 .settings = {{"plans", "off"}, {"margin", "0"}}};

RuntimeConfig config_with(Kernels kernels = Kernels::automatic) {
    return with_eager_profile(
        {.model_path = trained_model(), .n_ctx = 1024, .n_threads = 1, .kernels = kernels});
}

// Words that repeat in another order each time, so that short matches have several continuations.
std::string shuffled_text() {
    std::string text;
    const std::vector<std::string> nouns = {"river", "stones", "hills", "sea"};
    for (std::size_t i = 0; i < 14; ++i) {
        text += "The " + nouns[i * i % 4] + " of the " + nouns[(3 * i + 1) % 4] + " wears the " +
                nouns[i % 3] + ". ";
    }
    return text;
}

GenerateOptions greedy() {
    return {.n_predict = 120, .ignore_eos = true};
}

GenerateOptions sampled() {
    GenerateOptions options = greedy();
    options.sampling = {.temperature = 1.0f, .seed = 5};
    return options;
}

class Copies : public ::testing::Test {
  protected:
    Copies() : engine_(config_with()), session_(engine_) {}

    Result expect_plain_text(const Tokens& prompt, GenerateOptions options) {
        const Result plain = plain_text(session_, prompt, options);
        options.speculation = kCopies;
        Result found = session_.generate(prompt, options);
        EXPECT_EQ(found.tokens, plain.tokens);
        EXPECT_TRUE(found.speculation.row_invariant);
        return found;
    }

    Tokens prompt() const { return engine_.tokenize(shuffled_text(), /*add_bos=*/false); }

    Engine engine_;
    Session session_;
};

TEST_F(Copies, TreesWriteThePlainText) {
    for (const GenerateOptions& options : {greedy(), sampled()}) {
        const SpeculationStatistics copies = expect_plain_text(prompt(), options).speculation;
        EXPECT_GT(copies.n_tree_nodes, copies.n_drafted) << "there were branches";
        EXPECT_GT(copies.n_accepted, 0);
        EXPECT_LT(copies.n_accepted, copies.n_drafted);
    }
}

TEST_F(Copies, EveryAcceptanceRuleTakesTrees) {
    for (const AcceptanceRule rule : {AcceptanceRule::ratio, AcceptanceRule::equality}) {
        GenerateOptions options = sampled();
        options.speculation = kCopies;
        options.speculation.acceptance = rule;
        const Result found = session_.generate(prompt(), options);
        EXPECT_EQ(found.tokens.size(), 120u);
        EXPECT_GT(found.speculation.n_tree_nodes, found.speculation.n_drafted);
        if (rule == AcceptanceRule::equality) {
            EXPECT_EQ(found.tokens, plain_text(session_, prompt(), options).tokens);
        }
    }
}

TEST_F(Copies, ReferencesAndPredictionsSavePasses) {
    const Tokens start = engine_.tokenize("The sea. ", /*add_bos=*/false);
    for (GenerateOptions options : {greedy(), sampled()}) {
        const Result alone = expect_plain_text(start, options);
        GenerateOptions with_answer = options;
        with_answer.references = {prompt(), alone.tokens};
        const Result copied = expect_plain_text(start, with_answer);
        EXPECT_LT(copied.speculation.rounds, alone.speculation.rounds);
        with_answer.references = {prompt()};
        with_answer.prediction = alone.tokens;
        const Result predicted = expect_plain_text(start, with_answer);
        EXPECT_LT(predicted.speculation.rounds, alone.speculation.rounds / 3);
        GenerateOptions misled = options;
        misled.references = {prompt(), start};
        misled.prediction = prompt();
        expect_plain_text(start, misled);
    }
}

// The index follows a conversation that is cut, goes on in another way, and starts again.
TEST_F(Copies, ConversationsMayBeCut) {
    Tokens text = prompt();
    const std::vector<Tokens> others = {engine_.tokenize("The hills. ", /*add_bos=*/false),
                                        engine_.tokenize("Stones and sea", /*add_bos=*/false)};
    for (const GenerateOptions& options : {greedy(), sampled()}) {
        for (const std::size_t kept :
             {text.size(), std::size_t{200}, std::size_t{90}, std::size_t{0}}) {
            for (const Tokens& more : others) {
                Tokens next(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept));
                next.insert(next.end(), more.begin(), more.end());
                const Result found = expect_plain_text(next, options);
                next.insert(next.end(), found.tokens.begin(), found.tokens.end());
                next.insert(next.end(), more.begin(), more.end());
                expect_plain_text(next, options);
            }
        }
    }
}

// Where a tree would not have the bits of plain decoding, copies are chains.
TEST(CopiesOnOtherKernels, AreChains) {
    Engine engine(config_with(Kernels::ggml));
    Session session(engine);
    GenerateOptions options = greedy();
    options.speculation = kCopies;
    const Tokens prompt = engine.tokenize(shuffled_text(), /*add_bos=*/false);
    const SpeculationStatistics copies = session.generate(prompt, options).speculation;
    EXPECT_GT(copies.n_drafted, 0);
    EXPECT_EQ(copies.n_tree_nodes, copies.n_drafted);
}

}  // namespace
}  // namespace knap::test::runtime_copies_test
