// The flags of speculation, and what a user sees of drafts. The text stays the same as in plain
// decoding.
#include "cli/command.h"
#include "support/tiny_adapter.h"

namespace knap::cli_speculation_test {
namespace {

using nlohmann::json;

// The answer repeats one letter, so lookup can draft it.
const Words kOneLetter{"-p", "hello", "-n", "16", "--logit-bias", "65+1000"};
const std::string kSixteenLetters(16, 'A');

// Batch-invariant weights, so that no near tie affects a comparison.
nlohmann::json run_exact(const Words& flags) {
    const auto model = tiny_model("tiny-llama", "Q8_0").string();
    const auto result = run_knap(
        Words{"run", "-m", model, "-t", "1", "-p", "hello", "-n", "24", "--ignore-eos", "--json"} +
        flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json::parse(result.output, nullptr, /*allow_exceptions=*/false);
}

// The same with plain decoding: what the others must write.
nlohmann::json run_plain(const Words& flags = {}) {
    json object = run_exact(flags + Words{"--strategy", "autoregressive"});
    expect_plain_decoding(object);
    return object;
}

TEST(SpeculationFlags, EveryStrategyWritesTheTextOfPlainDecoding) {
    const Words sampled{"--temp", "0.8", "-s", "7"};
    const json plain = run_plain();
    const json plain_sampled = run_plain(sampled);
    for (const Words& flags :
         {Words{"--strategy", "knapspec"}, Words{"--strategy", "lookup"},
          Words{"--strategy", "lookup", "--draft-max", "3"},
          Words{"--strategy", "static", "--draft-plan", "a=w4+16", "--draft-max", "4"},
          Words{"--strategy", "static", "--draft-plan", "m=skip", "--exit-confidence", "0.5"}}) {
        EXPECT_EQ(run_exact(flags)["tokens"], plain["tokens"]) << testing::PrintToString(flags);
        EXPECT_EQ(run_exact(flags + sampled)["tokens"], plain_sampled["tokens"])
            << testing::PrintToString(flags);
        EXPECT_EQ(run_exact(flags)["strategy"], flags[1]);
    }
}

TEST(SpeculationFlags, KangarooDraftsWithItsAdapter) {
    const auto adapter = test::write_tiny(test::tiny_adapter(), "cli-adapter.gguf").string();
    const Words kangaroo{"--strategy", "kangaroo"};
    const json found = run_exact(kangaroo + Words{"--adapter", adapter});
    EXPECT_EQ(found["tokens"], run_plain()["tokens"]);
    EXPECT_EQ(found["strategy"], "kangaroo");
    EXPECT_GT(found["n_drafted"], 0);
    // An adapter belongs to the model; other strategies ignore it.
    EXPECT_EQ(run_exact({"--strategy", "lookup", "--adapter", adapter})["tokens"], found["tokens"]);
    expect_error(run_tiny(kOneLetter + kangaroo), 1, "--adapter: expected an adapter");
    expect_error(run_tiny(kOneLetter + Words{"--adapter", tiny_model().string()}), 1,
                 "expected kangaroo (an adapter), found 'llama'");
    expect_error(run_tiny(kOneLetter + Words{"--adapter", "no/such.gguf"}), 1,
                 "no/such.gguf: cannot be opened");
}

TEST(SpeculationFlags, JsonCountsRoundsAndDrafts) {
    const json object = run_json(kOneLetter + Words{"--strategy", "lookup"});
    EXPECT_EQ(object["text"], kSixteenLetters);
    EXPECT_EQ(object["strategy"], "lookup");
    EXPECT_GT(object["n_drafted"], 0);
    EXPECT_GE(object["n_tree_nodes"], object["n_drafted"]);
    EXPECT_GT(object["n_accepted"], 0);
    EXPECT_LT(object["rounds"], 16);
    EXPECT_NEAR(object["acceptance_rate"].get<double>(),
                object["n_accepted"].get<double>() / object["n_drafted"].get<double>(), 1e-9);
    EXPECT_GT(object["mean_accepted_length"], 1);
    EXPECT_FALSE(object["acceptance_by_position"].empty());
    EXPECT_EQ(object["sources"]["copy"]["n_drafted"], object["n_drafted"]);
    EXPECT_EQ(object["sources"]["copy"]["n_accepted"], object["n_accepted"]);
    EXPECT_EQ(object["sources"]["plan"]["rounds"], 0);
    EXPECT_GT(object["timings"]["verify_ms"], 0);
    EXPECT_EQ(object["is_projection"], false);
}

TEST(SpeculationFlags, PlainDecodingDraftsNothing) {
    const auto result = run_tiny(kOneLetter + Words{"--strategy", "autoregressive"});
    EXPECT_THAT(result.error, testing::Not(testing::HasSubstr("rounds")));
    const json object = plain_json(kOneLetter);
    EXPECT_EQ(object["n_drafted"], 0);
    EXPECT_EQ(object["acceptance_rate"], 0);
}

TEST(SpeculationFlags, StatisticsLineReportsDrafts) {
    const auto result = run_tiny(kOneLetter + Words{"--strategy", "lookup"});
    EXPECT_EQ(result.output, kSixteenLetters + "\n");
    EXPECT_THAT(result.error,
                testing::MatchesRegex("knap: .* GB/s\\); [0-9]+ rounds, [0-9.]+ % of [0-9]+ "
                                      "drafted tokens accepted, [0-9.]+ tokens per round\n"));
}

TEST(SpeculationFlags, ChatStatisticsReportDrafts) {
    ProcessRequest request;
    request.arguments = on_tiny_model("chat") +
                        Words{"-n", "16", "--logit-bias", "65+1000", "--strategy", "lookup"};
    request.input = "hello\n/stats\n";
    const auto result = run_knap(request);
    EXPECT_EQ(result.output, kSixteenLetters + "\n");
    EXPECT_THAT(result.error, testing::HasSubstr("\ndrafting     "));
    EXPECT_THAT(result.error, testing::HasSubstr(" tokens per round\n"));
}

TEST(SpeculationFlags, AssumedAcceptanceIsMarkedAsAProjection) {
    const Words flags =
        kOneLetter + Words{"-n",           "32",     "--strategy",          "static",
                           "--draft-plan", "m=skip", "--assume-acceptance", "0.5"};
    EXPECT_EQ(run_json(flags)["is_projection"], true);
    EXPECT_THAT(run_tiny(flags).error,
                testing::HasSubstr("(a projection: acceptance was assumed)"));
}

TEST(SpeculationFlags, FlagsThatDoNotFitTheStrategyAreErrors) {
    expect_error(
        run_tiny({"-p", "a", "-n", "1", "--strategy", "static", "--draft-plan", "nonsense"}), 1,
        "--draft-plan");
    expect_error(
        run_tiny({"-p", "a", "-n", "1", "--strategy", "static", "--draft-plan", "m99=skip"}), 1,
        "--draft-plan");
}

TEST(SpeculationFlags, StrategyOptionsReachTheStrategy) {
    const Words paper{"-p", "a", "-n", "1", "--strategy", "knapspec-paper", "--strategy-options"};
    EXPECT_EQ(run_tiny(paper + Words{"interval=7,variant=paper"}).exit_code, 0);
    expect_error(run_tiny(paper + Words{"interval=6"}), 1,
                 "--strategy-options: expected interval=code|paper|7..1000000, found '6'");
    expect_error(run_tiny({"-p", "a", "-n", "1", "--strategy", "lookup", "--strategy-options",
                           "interval=7"}),
                 1,
                 "--strategy-options interval: expected a strategy with this setting "
                 "(knapspec-paper, clasp), found lookup");
}

TEST(ShowDraft, WarnsWithoutATerminalAndPrintsPlainText) {
    const auto result = run_tiny(kOneLetter + Words{"--show-draft"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, kSixteenLetters + "\n");
    EXPECT_THAT(
        result.error,
        testing::StartsWith("knap: warning: --show-draft: standard output is not a terminal"));
}

TEST(ShowDraft, WarnsThatJsonHasNoColours) {
    const auto result = run_tiny(kOneLetter + Words{"--show-draft", "--json"});
    EXPECT_THAT(result.error, testing::StartsWith("knap: warning: --show-draft: --json"));
    EXPECT_EQ(json::parse(result.output)["text"], kSixteenLetters);
}

ProcessResult show_on_terminal(const std::string& no_color) {
    ProcessRequest request;
    request.arguments =
        on_tiny_model("run") + kOneLetter + Words{"--show-draft", "--strategy", "lookup"};
    request.is_on_terminal = true;
    request.environment = {{"NO_COLOR", no_color}};
    return run_knap(request);
}

TEST(ShowDraft, AcceptedTokensAreGreenOnATerminal) {
    const auto result = show_on_terminal("");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::HasSubstr("\033[32mA\033[0m"));
    EXPECT_THAT(result.output, testing::Not(testing::HasSubstr("warning")));
}

TEST(ShowDraft, RespectsNoColor) {
    const auto result = show_on_terminal("1");
    EXPECT_THAT(result.output, testing::HasSubstr("--show-draft: NO_COLOR is set"));
    EXPECT_THAT(result.output, testing::Not(testing::HasSubstr("\033[3")));
    EXPECT_THAT(result.output, testing::HasSubstr(kSixteenLetters));
}

}  // namespace
}  // namespace knap::cli_speculation_test
