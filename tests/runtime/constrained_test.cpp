// Under a grammar, whatever a strategy drafts, the text is plain decoding's under the same grammar,
// and it matches the grammar. One body for all strategies (support/strategy_cases.h).
#include <limits>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/chat.h"
#include "knap/knap.h"

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/served_together.h"
#include "support/strategy_cases.h"
#include "support/tiny_model.h"
#include "support/two_samples.h"

namespace knap::test::constrained_test {
namespace {

using ::testing::HasSubstr;

// Objects like {"name":"...","tags":["...",...],"is_new":true}: keys are forced, values are free.
constexpr const char* kObjects = R"(
root ::= "{\"name\":" string ",\"tags\":[" string ("," string){0,2} "],\"is_new\":" bool "}"
string ::= "\"" [^"\\\x00-\x1f]{0,12} "\""
bool ::= "true" | "false"
)";

// An object of kObjects with strings of any bytes.
bool is_object(const std::string& text) {
    static const std::regex pattern(
        R"(\{"name":"[^"\\]*","tags":\["[^"\\]*"(,"[^"\\]*"){0,2}\],"is_new":(true|false)\})");
    return std::regex_match(text, pattern);
}

// The characters of a string in JSON: an escape is one, and so are the bytes of a character.
int json_length(std::string_view text) {
    int length = -2;  // the quotes
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            i += text[i + 1] == 'u' ? 5 : 1;
        }
        length += (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80 ? 0 : 1;
    }
    return length;
}

std::vector<SamplingOptions> samplings() {
    return {
        {},
        {.repeat_penalty = 1.3f, .logit_bias = {{65, 3.0f}, {66, -2.0f}}},
        {.temperature = 1.0f, .seed = 1},  // with cuts
        {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 2},
        {.temperature = 1.0f, .top_k = 0, .repeat_penalty = 1.2f, .seed = 3},
    };
}

class ConstrainedStrategy : public ::testing::TestWithParam<StrategyCase> {
  protected:
    ConstrainedStrategy() : engine_(config_of(GetParam())), session_(engine_) {}

    Result generate(const std::vector<Token>& tokens, const GenerateOptions& request) {
        GenerateOptions options = request;
        options.speculation = GetParam().speculation;
        options.speculation.acceptance = request.speculation.acceptance;
        return session_.generate(tokens, options);
    }

    void expect_plain_text(const std::vector<Token>& prompt, const GenerateOptions& request) {
        const Result plain = plain_text(session_, prompt, request);
        const Result result = generate(prompt, request);
        EXPECT_EQ(result.tokens, plain.tokens);
        EXPECT_EQ(result.text, plain.text);
        EXPECT_EQ(result.stop, plain.stop);
        EXPECT_EQ(plain.speculation.n_forced, 0);
        EXPECT_LE(result.speculation.n_forced, result.speculation.n_accepted);
        n_forced_ += result.speculation.n_forced;
        n_complete_ += result.stop == StopReason::eos ? 1 : 0;
        if (result.stop == StopReason::eos && !request.grammar.text.empty()) {
            last_text_ = result.text;
        }
    }

    Token end_of_text() const {
        const ModelInfo info = engine_.info();
        Token token = 0;
        while (engine_.detokenize({&token, 1}) != info.eos_token) {
            ++token;
        }
        return token;
    }

    std::vector<Token> prompt(unsigned seed) const {
        return prompt_of(GetParam(), engine_, 30, seed);
    }

    Engine engine_;
    Session session_;
    int n_forced_ = 0;
    int n_complete_ = 0;
    std::string last_text_;
};

TEST_P(ConstrainedStrategy, WritesWhatPlainDecodingWritesUnderTheGrammar) {
    unsigned seed = 0;
    for (const SamplingOptions& sampling : samplings()) {
        for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
            SCOPED_TRACE(seed++);
            GenerateOptions request{.n_predict = 200, .grammar = {.text = kObjects}};
            request.sampling = sampling;
            request.speculation.acceptance = rule;
            expect_plain_text(prompt(1 + seed % 3), request);
            EXPECT_TRUE(is_object(last_text_)) << last_text_;
        }
    }
    EXPECT_EQ(n_complete_, 10) << "answers end where the grammar does";
    EXPECT_GT(n_forced_, 100) << "keys are drafted without a pass";
}

// More repetitions than libllama writes out: the bound ends the text in the middle of drafts.
TEST_P(ConstrainedStrategy, StopsAtTheBoundOfALongText) {
    for (const SamplingOptions& sampling : samplings()) {
        GenerateOptions request{
            .n_predict = 400,
            .grammar = {
                .text = json_schema_to_gbnf(R"({"type":"string","minLength":66,"maxLength":70})")}};
        request.sampling = sampling;
        expect_plain_text(prompt(2), request);
        EXPECT_THAT(json_length(last_text_), testing::AllOf(testing::Ge(66), testing::Le(70)))
            << last_text_;
        last_text_.clear();
    }
    EXPECT_EQ(n_complete_, 5);
}

// Copies reach to the end of the text, and its last token is drafted too.
TEST_P(ConstrainedStrategy, DraftsMayEndTheText) {
    const Token end = end_of_text();
    for (const SamplingOptions& sampling : samplings()) {
        GenerateOptions request{.n_predict = 60, .grammar = {.text = "root ::= [a-z]{12}"}};
        request.sampling = sampling;
        std::vector<Token> answer = plain_text(session_, prompt(1), request).tokens;
        answer.push_back(end);
        request.prediction = answer;
        request.references = {answer};
        expect_plain_text(prompt(1), request);
        last_text_.clear();
    }
    EXPECT_EQ(n_complete_, 5);
}

TEST_P(ConstrainedStrategy, MayBeCutAnywhere) {
    for (const int n_predict : {0, 1, 2, 5, 9, 14, 20}) {
        SCOPED_TRACE(n_predict);
        GenerateOptions request{.n_predict = n_predict, .grammar = {.text = kObjects}};
        expect_plain_text(prompt(1), request);
        request.stop = {"tag"};
        request.n_predict = 100;
        expect_plain_text(prompt(2), request);
    }
}

TEST_P(ConstrainedStrategy, LazyAndLateGrammarsLeaveTheBeginningFree) {
    const Grammar lazy{.text = "root ::= [aeiou ] [b-df-hj-np-tv-z]{3}",
                       .trigger_patterns = {R"([\s\S]*?([aeiou ])[\s\S]*)"}};
    const Grammar late{.text = "root ::= [0-9]{8}", .starts_after = {"e", " "}};
    for (const Grammar& grammar : {lazy, late}) {
        for (const SamplingOptions& sampling : samplings()) {
            GenerateOptions request{.n_predict = 40, .grammar = grammar};
            request.sampling = sampling;
            // Tokens of several bytes may have a trigger inside.
            for (Token token = 256; token < engine_.info().n_vocab; ++token) {
                request.sampling.logit_bias.emplace_back(token, -1000.0f);
            }
            expect_plain_text(prompt(1), request);
        }
    }
}

// What was drafted under a grammar must not stay for a request without one.
TEST_P(ConstrainedStrategy, RequestsWithoutAGrammarAreFreeAgain) {
    const GenerateOptions free{.n_predict = 40};
    const GenerateOptions bound{.n_predict = 60, .grammar = {.text = kObjects}};
    for (int i = 0; i < 2; ++i) {
        expect_plain_text(prompt(1), bound);
        expect_plain_text(prompt(1), free);
    }
}

TEST_P(ConstrainedStrategy, TheRatioRuleKeepsToTheGrammar) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
        GenerateOptions request{.n_predict = 200, .grammar = {.text = kObjects}};
        request.sampling = {.temperature = 1.0f, .top_k = seed % 2 == 0 ? 40 : 0, .seed = seed};
        request.speculation.acceptance = AcceptanceRule::ratio;
        const Result result = generate(prompt(seed), request);
        EXPECT_EQ(result.stop, StopReason::eos);
        EXPECT_TRUE(is_object(result.text)) << result.text;
    }
}

INSTANTIATE_TEST_SUITE_P(All,
                         ConstrainedStrategy,
                         ::testing::ValuesIn(strategy_cases()),
                         [](const auto& test) { return test.param.name; });

class ConstrainedSession : public ::testing::Test {
  protected:
    ConstrainedSession()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 256, .n_threads = 1}),
          session_(engine_) {}

    Result generate(const GenerateOptions& options) {
        return session_.generate(random_tokens(20, 256, 1), options);
    }

    std::string error_of(const GenerateOptions& options) {
        try {
            generate(options);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    Engine engine_;
    Session session_;
};

TEST_F(ConstrainedSession, ForcedTokensTakeFewerPasses) {
    const GenerateOptions request{
        .speculation = {.strategy = "lookup"},
        .grammar = {.text = R"(root ::= "abcdefghijklmnopqrstuvwxyz" [01])"}};
    const Result plain = [&] {
        GenerateOptions options = request;
        options.speculation = plain_decoding();
        return generate(options);
    }();
    const Result drafted = generate(request);
    EXPECT_EQ(drafted.text, plain.text);
    EXPECT_EQ(plain.speculation.rounds, plain.n_generated) << "one for each token, and the end";
    EXPECT_GE(drafted.speculation.n_forced, 15);
    EXPECT_LE(drafted.speculation.rounds, plain.speculation.rounds - 15);
    EXPECT_EQ(drafted.speculation.copies.n_drafted, 0) << "forced tokens are no copies";
}

TEST_F(ConstrainedSession, ACopyThatSpellsForcedTextGoesOnAfterIt) {
    GenerateOptions request{.speculation = plain_decoding(),
                            .grammar = {.text = R"(root ::= ("key" [a-z]){20})"}};
    const Result plain = generate(request);
    request.references = {plain.tokens};
    request.speculation.strategy = "lookup";
    const Result copied = generate(request);
    EXPECT_EQ(copied.tokens, plain.tokens);
    EXPECT_GT(copied.speculation.copies.n_accepted, copied.n_generated / 2);
    EXPECT_LT(copied.speculation.rounds, 20) << "more than a key and a letter in a round";
}

TEST_F(ConstrainedSession, AnswersEndWhereTheGrammarDoes) {
    for (const char* strategy : {"autoregressive", "knapspec"}) {
        const Result result = generate(
            {.speculation = {.strategy = strategy}, .grammar = {.text = R"(root ::= "yes")"}});
        EXPECT_EQ(result.text, "yes");
        EXPECT_EQ(result.stop, StopReason::eos);
    }
    EXPECT_EQ(generate({.grammar = {.text = R"(root ::= "")"}}).text, "");
}

TEST_F(ConstrainedSession, BadRequestsAreRefusedBeforeAnythingChanges) {
    const Result before = generate({.n_predict = 5});
    const std::vector<Token> history(session_.history().begin(), session_.history().end());
    EXPECT_THAT(error_of({.grammar = {.text = "root ::= ("}}), HasSubstr("`.grammar`"));
    EXPECT_THAT(error_of({.ignore_eos = true, .grammar = {.text = R"(root ::= "a")"}}),
                HasSubstr("`.ignore_eos`"));
    EXPECT_THAT(session_.history(), ::testing::ElementsAreArray(history));
    EXPECT_EQ(generate({.n_predict = 5}).tokens, before.tokens);
}

// A token that is forbidden otherwise cannot be the only one that fits.
TEST_F(ConstrainedSession, ContradictionsAreToldApart) {
    GenerateOptions request{.grammar = {.text = R"(root ::= "a")"}};
    const Token a = engine_.tokenize("a", false)[0];
    request.sampling.logit_bias = {{a, -std::numeric_limits<float>::infinity()}};
    EXPECT_THAT(error_of(request), HasSubstr("`.grammar`"));
    EXPECT_EQ(generate({.grammar = {.text = R"(root ::= "a")"}}).text, "a") << "it goes on";
}

// Logprobs are those of the model, whatever the grammar forbids.
TEST_F(ConstrainedSession, LogprobsAreTheModelsOwn) {
    std::vector<float> logprobs;
    const Observer observer{
        .on_token = [&](const TokenEvent& event) { logprobs.push_back(event.logprob); }};
    session_.generate(random_tokens(20, 256, 1),
                      {.grammar = {.text = R"(root ::= "yes")"}, .n_logprobs = 0}, observer);
    ASSERT_FALSE(logprobs.empty());
    EXPECT_LT(logprobs[0], -0.5f) << "not certain to the model";
}

// Drafts are drawn from five tokens, of which three fit. The last two tokens of an answer have nine
// outcomes.
TEST_F(ConstrainedSession, DrawsFromThePlainDistributionByTheRatioRule) {
    constexpr std::uint64_t kAnswers = 700;
    GenerateOptions request{.n_predict = 8, .grammar = {.text = "root ::= [abc]{9}"}};
    request.sampling = {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
    for (Token token = 0; token < engine_.info().n_vocab; ++token) {
        const std::string piece = engine_.detokenize(std::span(&token, 1));
        if (std::string_view("abcde").find(piece) == std::string_view::npos) {
            request.sampling.logit_bias.emplace_back(token,
                                                     -std::numeric_limits<float>::infinity());
        }
    }
    for (const char* width : {"1", "3"}) {
        TextCounts plain;
        TextCounts drafted;
        int n_accepted = 0;
        for (std::uint64_t seed = 1; seed <= kAnswers; ++seed) {
            const auto count_end = [](TextCounts& counts, const Result& result) {
                ++counts[{result.tokens.end() - 2, result.tokens.end()}];
            };
            request.sampling.seed = seed;
            request.speculation = plain_decoding();
            count_end(plain, generate(request));
            request.sampling.seed = kAnswers + seed;
            request.speculation = {.strategy = "static",
                                   .settings = {{"plan", "m1=skip"}, {"width", width}},
                                   .acceptance = AcceptanceRule::ratio};
            const Result result = generate(request);
            count_end(drafted, result);
            n_accepted += result.speculation.n_accepted;
        }
        // Eight degrees of freedom: 28 is exceeded once in 2,000 times.
        EXPECT_LT(chi_square(plain, drafted), 28) << width;
        EXPECT_EQ(plain.size(), 9u);
        EXPECT_GT(n_accepted, 0);
    }
}

TEST(ConstrainedSessions, SeveralAtOnceKeepToTheirOwnGrammars) {
    const RuntimeConfig config{
        .model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 256, .n_threads = 1};
    const std::vector<std::string> grammars{kObjects, "root ::= [a-f]{20}",
                                            "root ::= \"abcdefgh\" [0-9]{3,30} \"xyz\"", ""};
    std::vector<SharedRequest> requests = mixed_requests(16, 256);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].options.grammar.text = grammars[i % grammars.size()];
        requests[i].options.ignore_eos = grammars[i % grammars.size()].empty();
    }
    expect_texts_of_plain_decoding(config, 4, requests);
}

}  // namespace
}  // namespace knap::test::constrained_test
