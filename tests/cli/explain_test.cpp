// `knap explain`.
#include <signal.h>

#include "cli/command.h"

namespace knap::cli_explain_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// Costs are measured once, for all tests.
fs::path cache_with_profile() {
    static const fs::path folder = [] {
        fs::path path = temporary_folder() / "explain_cache";
        ProcessRequest request;
        request.arguments = on_tiny_model("profile") + Words{"-c", "512", "--seconds", "0.2"};
        request.environment = {{"KNAP_CACHE_DIR", path.string()}};
        EXPECT_EQ(run_knap(request).exit_code, 0);
        return path;
    }();
    return folder;
}

std::string words_of(int n_words) {
    std::string text;
    for (int i = 0; i < n_words; ++i) {
        text += "flint " + std::to_string(i) + " ";
    }
    return text;
}

ProcessRequest request(const Words& flags) {
    ProcessRequest request;
    request.arguments = on_tiny_model("explain") + Words{"-c", "512", "-n", "8"} + flags;
    request.environment = {{"KNAP_CACHE_DIR", cache_with_profile().string()}};
    return request;
}

ProcessResult explain(const Words& flags) {
    return run_knap(request(flags));
}

// Long enough for windows.
const Words kPrompt{"-p", words_of(30)};

TEST(ExplainCommand, ShowsPlanCandidatesTimesAndDecisions) {
    const auto result = explain(kPrompt);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    for (const std::string text : {"1 thread; prompt of ",
                                   "A plain step takes ",
                                   " steps: 1: 1.00, 2: ",
                                   ", 8: ",
                                   "those of the saved profile",
                                   "  layer      0",
                                   "  attention  ",
                                   "  MLP        ",
                                   "# full   ",
                                   ". skip   head ",
                                   "predicted  measured  plan or strategy",
                                   "  lookup\n",
                                   "  knapspec\n",
                                   "Where knapspec's time goes: ",
                                   "  draft ",
                                   "  verify ",
                                   "  search ",
                                   "  other ",
                                   "What knapspec decided\n",
                                   "  draft source: reason\n",
                                   "All runs wrote the text of plain decoding\n"}) {
        EXPECT_THAT(result.output, HasSubstr(text));
    }
    EXPECT_THAT(result.output, Not(HasSubstr("\033["))) << "colours are for terminals";
}

// The costs of this machine, with verifications forty times as slow.
fs::path profile_with_slow_verifications() {
    for (const auto& entry : fs::directory_iterator(cache_with_profile())) {
        if (entry.path().filename().string().starts_with("profile-")) {
            json profile = read_json(entry.path().string());
            for (json& sample : profile["samples"]) {
                const bool has_rows = sample["n_rows"] > 1;
                sample["ms"] = sample["ms"].get<double>() * (has_rows ? 40 : 1);
            }
            return write_text("slow.json", profile.dump());
        }
    }
    ADD_FAILURE() << "no profile in " << cache_with_profile();
    return {};
}

TEST(ExplainCommand, ChoosesPlainDecodingWhereItIsPredictedToBeFaster) {
    const Words slow = kPrompt + Words{"--profile", profile_with_slow_verifications().string()};
    const auto text = explain(slow);
    ASSERT_EQ(text.exit_code, 0) << text.error;
    EXPECT_THAT(text.output, HasSubstr("\nPlain decoding is chosen: no plan is predicted to be "
                                       "faster. The best candidate: "));
    EXPECT_THAT(text.output, Not(HasSubstr("that knapspec chose")));
    const json object = json::parse(explain(slow + Words{"--json"}).output);
    EXPECT_TRUE(object["chosen"].is_null());
    EXPECT_LT(object["candidates"][0]["predicted_speed"], 1);
}

TEST(ExplainCommand, AChosenPlanIsPredictedToBeFasterThanPlainDecoding) {
    const json object = json::parse(explain(kPrompt + Words{"--json"}).output);
    for (const json& candidate : object["candidates"]) {
        if (candidate["plan"] == object["chosen"]) {
            EXPECT_GE(candidate["predicted_speed"], 1);
        }
    }
}

TEST(ExplainCommand, ColoursLevelsOnATerminalUnlessNoColorIsSet) {
    ProcessRequest terminal = request(kPrompt);
    terminal.is_on_terminal = true;
    const auto colored = run_knap(terminal);
    EXPECT_EQ(colored.exit_code, 0);
    EXPECT_THAT(colored.output, HasSubstr("\033[34m#\033[0m full"));
    terminal.environment.push_back({"NO_COLOR", "1"});
    EXPECT_THAT(run_knap(terminal).output, HasSubstr(" # full"));
}

TEST(ExplainCommand, JsonHasEveryPromisedField) {
    const auto result = explain(kPrompt + Words{"--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json object = json::parse(result.output);
    EXPECT_GT(object["n_prompt"], 100);
    EXPECT_EQ(object["has_saved_costs"], true);
    EXPECT_GT(object["plain_step_ms"], 0);
    EXPECT_EQ(object["verify"][3]["n_rows"], 8);
    EXPECT_GT(object["verify"][3]["steps"], 0);
    EXPECT_TRUE(object.contains("chosen"));
    expect_plain_decoding(object["plain"]);
    ASSERT_FALSE(object["candidates"].empty());
    const json& candidate = object["candidates"][0];
    for (const char* field : {"plan", "source", "agreed", "n_rows"}) {
        EXPECT_TRUE(candidate.contains(field)) << field;
    }
    for (const char* field : {"draft_ratio", "acceptance", "length", "predicted_speed"}) {
        EXPECT_GT(candidate[field], 0) << field;
    }
    EXPECT_EQ(candidate["trial"]["result"]["strategy"], "static");
    EXPECT_EQ(candidate["trial"]["is_plain_text"], true);
    EXPECT_EQ(object["lookup"]["result"]["strategy"], "lookup");
    EXPECT_GT(object["knapspec"]["speed"], 0);
    ASSERT_FALSE(object["knapspec"]["result"]["decisions"].empty());
    const json& decision = object["knapspec"]["result"]["decisions"][0];
    for (const char* field : {"token", "source", "plan", "reason", "predicted", "measured"}) {
        EXPECT_TRUE(decision.contains(field)) << field;
    }
    const bool is_plain = decision["source"].get<std::string>().starts_with("plain");
    EXPECT_EQ(decision["plan"].is_null(), is_plain) << decision;
    EXPECT_EQ(object["knapspec"]["result"]["tokens"], object["plain"]["tokens"]);
}

TEST(ExplainCommand, WithoutAProfileCostsAreMeasured) {
    const auto result = explain(kPrompt + Words{"--profile", "none"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("measured for this run only; `knap profile` saves them"));
}

TEST(ExplainCommand, SvgHasModulesLevelsAndThePlan) {
    const fs::path path = temporary_folder() / "plan.svg";
    const auto result = explain(kPrompt + Words{"-o", path.string()});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const std::string svg = read_text(path);
    for (const char* text : {"attention", "MLP", "layer (head: ", "full", ", predicted "}) {
        EXPECT_THAT(svg, HasSubstr(text));
    }
    EXPECT_THAT(svg, HasSubstr("gnuplot_plot_2")) << "two levels at least";
}

TEST(ExplainCommand, PngIsAPicture) {
    const fs::path path = temporary_folder() / "plan.png";
    const auto result = explain(kPrompt + Words{"-o", path.string()});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(read_text(path), testing::StartsWith("\x89PNG\r\n\x1a\n"));
}

TEST(ExplainCommand, PromptOfOneTokenIsExplained) {
    const auto result = explain({"--raw", "-p", "a"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("What knapspec decided\n"));
}

TEST(ExplainCommand, PromptLongerThanTheContextIsAnError) {
    expect_error(explain({"-p", words_of(400)}), 1,
                 "prompt: expected at most 512 tokens (the context, -c), found ");
}

TEST(ExplainCommand, BadFlagsAreRefused) {
    expect_error(explain({}), 2, "no prompt: expected -p TEXT, -f FILE");
    expect_error(explain({"-p", "a", "-n", "0"}), 2, "--n-predict");
    expect_error(explain({"-p", "a", "-o", "plan.json"}), 2,
                 "--output: expected a file that ends in .svg or .png, found 'plan.json'");
    expect_error(explain({"-p", "a", "--strategy", "lookup"}), 2, "unknown flag '--strategy'");
    expect_error(explain({"-p", "a", "--profile", "/no/such/file"}), 1, "found no file");
}

TEST(ExplainCommand, CtrlCStopsIt) {
    ProcessRequest measuring = request(kPrompt + Words{"--profile", "none"});
    measuring.is_on_terminal = true;
    measuring.signals = {{SIGINT, "measure ["}};
    const auto result = run_knap(measuring);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.output, HasSubstr("knap: the explanation was interrupted"));
}

}  // namespace
}  // namespace knap::cli_explain_test
