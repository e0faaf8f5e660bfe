// `knap search`, and --plan-file, which drafts with its result.
#include <signal.h>

#include "cli/command.h"

namespace knap::search_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

fs::path prompts() {
    return write_text("search.jsonl",
                      "{\"prompt\": \"flint and chert\"}\n{\"prompt\": \"one two three\"}\n");
}

ProcessRequest request(const Words& flags) {
    ProcessRequest request;
    request.arguments = on_tiny_model("search") +
                        Words{"-c", "256", "-n", "6", "--data", prompts().string()} + flags;
    return request;
}

ProcessResult search(const Words& flags) {
    return run_knap(request(flags));
}

const Words kBayesian{"--method", "draft-verify"};
const Words kGrid{"--method", "layerskip", "--exits", "1,3", "--lengths", "2,4"};

TEST(SearchCommand, SweepsTheGridAndTellsHowToUseTheBestPlan) {
    const std::string file = fresh_file("grid.json");
    const auto result = search(kGrid + Words{"-o", file});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    for (const std::string text :
         {"1 thread; layerskip: 4 trials of 2 prompts, 6 tokens after each", "exit=1", "exit=3",
          "To draft with the best plan: knap run --strategy layerskip --plan-file "}) {
        EXPECT_THAT(result.output, HasSubstr(text));
    }
    const json kept = read_json(file);
    EXPECT_EQ(kept["trials"].size(), 4u);
    EXPECT_EQ(kept["best"]["origin"], "grid");
    EXPECT_THAT(result.output, testing::Not(HasSubstr("The best plan is")));
    EXPECT_EQ(kept["settings"]["exit_layers"], (json{1, 3}));
    EXPECT_EQ(kept["settings"]["lengths"], (json{2, 4}));
    EXPECT_EQ(kept["settings"]["n_prompts"], 2);
}

TEST(SearchCommand, ContinuesWithMoreTrials) {
    const std::string file = fresh_file("bayesian.json");
    const auto started = search(kBayesian + Words{"-o", file, "--trials", "2"});
    ASSERT_EQ(started.exit_code, 0) << started.error;
    EXPECT_THAT(started.output, HasSubstr("length          origin  plan\n"));
    EXPECT_THAT(started.output, HasSubstr("  starting-point  "));
    EXPECT_THAT(started.output, HasSubstr("The best plan is a starting point, made by hand; "));
    const json first = read_json(file);
    ASSERT_EQ(first["trials"].size(), 2u);
    const auto result = search(kBayesian + Words{"-o", file, "--trials", "4", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json second = read_json(file);
    EXPECT_EQ(json::parse(result.output), second);
    ASSERT_EQ(second["trials"].size(), 4u);
    EXPECT_EQ(second["trials"][0], first["trials"][0]);
    EXPECT_EQ(second["trials"][1], first["trials"][1]);
    EXPECT_EQ(second["trials"][3]["point"].size(), 8u);
    EXPECT_EQ(second["trials"][1]["origin"], "starting-point");
    EXPECT_EQ(second["trials"][2]["origin"], "optimiser");
    const auto shown = search(kBayesian + Words{"-o", file, "--trials", "4"}).output;
    EXPECT_THAT(shown, second["best"]["origin"] == "optimiser"
                           ? HasSubstr("The best plan is the optimiser's\n")
                           : HasSubstr("none of the 2 that the optimiser chose is faster\n"));
}

TEST(SearchCommand, AFileOfAnotherSearchIsRefusedAndKept) {
    const std::string file = fresh_file("other.json");
    ASSERT_EQ(search(kBayesian + Words{"-o", file, "--trials", "1"}).exit_code, 0);
    const std::string before = read_text(file);
    expect_error(search(kBayesian + Words{"-o", file, "--seed", "5"}), 1,
                 "this search cannot go on from the file: its `seed` differs");
    expect_error(search(kGrid + Words{"-o", file}), 1, "this search cannot go on from the file");
    EXPECT_EQ(read_text(file), before);
    const auto no_search = write_text("no_search.json", "hello");
    expect_error(search(kBayesian + Words{"-o", no_search.string()}), 1, "damaged text");
}

TEST(SearchCommand, CtrlCKeepsTheTrialsAndTellsHowToContinue) {
    const std::string file = fresh_file("interrupted.json");
    ProcessRequest long_search = request(kBayesian + Words{"-o", file, "--trials", "10000"});
    long_search.is_on_terminal = true;
    long_search.signals = {{SIGINT, "best "}};
    const auto result = run_knap(long_search);
    EXPECT_EQ(result.exit_code, 130) << result.output;
    EXPECT_THAT(result.output, HasSubstr(" of 10000 trials; they are saved in " + file));
    EXPECT_THAT(result.output, HasSubstr("run the same command to continue"));
    EXPECT_GE(read_json(file)["trials"].size(), 1u);
}

TEST(SearchCommand, BadFlagsAreRefused) {
    expect_error(run_knap(on_tiny_model("search") + Words{"--method", "layerskip"}), 2,
                 "--data: expected a file of prompts");
    expect_error(search({}), 2, "--method: expected draft-verify|layerskip, found none");
    expect_error(search({"--method", "luck"}), 2,
                 "--method: expected draft-verify|layerskip, found 'luck'");
    expect_error(search(kBayesian + Words{"--exits", "1"}), 2, "--exits: expected --method");
    expect_error(search(kBayesian + Words{"--lengths", "1"}), 2, "--lengths: expected --method");
    expect_error(search(kGrid + Words{"--seed", "1"}), 2, "--seed: expected --method");
    expect_error(search(kGrid + Words{"--lengths", "65"}), 2,
                 "--lengths: expected a whole number from 1 to 64, found '65'");
    expect_error(search(kGrid + Words{"-n", "1"}), 2, "--n-predict");
    expect_error(search(kGrid + Words{"-o", ""}), 2, "--output: expected a file, found ''");
    expect_error(search(kGrid + Words{"--exits", "1,5"}), 1,
                 "--exits: expected layers from 1 to 4 of the model, found 5");
    expect_error(search(kGrid + Words{"-o", "/no/such/folder/search.json"}), 1, "/no/such/folder");
    expect_error(search(kGrid + Words{"--data", "/no/such/file"}), 1, "/no/such/file");
}

TEST(SearchCommand, LinesWithoutAPromptAreReported) {
    const auto data = write_text("half_bad.jsonl", "nonsense\n{\"prompt\": \"flint\"}\n");
    const auto result = search(kGrid + Words{"--data", data.string(), "--trials", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, HasSubstr("half_bad.jsonl:1: "));
    EXPECT_THAT(result.output, HasSubstr("1 trial of 1 prompt"));
}

class PlanFile : public testing::Test {
  protected:
    static std::string file() {
        static const std::string path = [] {
            const std::string fresh = fresh_file("plan.json");
            EXPECT_EQ(search(kGrid + Words{"-o", fresh}).exit_code, 0);
            return fresh;
        }();
        return path;
    }

    static Words drafting(const std::string& strategy) {
        return {"-p", "flint", "--strategy", strategy, "--plan-file", file()};
    }
};

TEST_F(PlanFile, DraftsWithTheBestPlan) {
    const json plain = plain_json({"-p", "flint"});
    for (const char* strategy : {"static", "cascade", "draft-verify", "layerskip"}) {
        const json result = run_json(drafting(strategy));
        EXPECT_EQ(result["tokens"], plain["tokens"]) << strategy;
        EXPECT_GT(result["n_drafted"], 0) << strategy;
    }
}

TEST_F(PlanFile, IsRefusedWhenItCannotBeUsed) {
    expect_error(run_tiny(drafting("lookup")), 1, "--plan-file: expected a strategy that");
    expect_error(run_tiny(drafting("asd")), 1, "--plan-file: expected a strategy that");
    expect_error(run_tiny(drafting("static") + Words{"--draft-plan", "exit=2"}), 1,
                 "--plan-file: expected either this or --draft-plan, found both");
    expect_error(run_tiny({"-p", "flint", "--strategy", "draft-verify"}), 1,
                 "--draft-plan: expected a plan for strategy draft-verify");
    expect_error(run_tiny({"-p", "flint", "--strategy", "static", "--plan-file", "/no/such"}), 1,
                 "--plan-file: expected a file that `knap search` wrote for this model");
    expect_error(run_tiny({"-p", "flint", "--plan-file", ""}), 2, "--plan-file: expected a file");
}

TEST_F(PlanFile, FromAnotherModelIsRefused) {
    Words words = drafting("static");
    words.insert(words.begin(),
                 {"run", "-t", "1", "-m", tiny_model("tiny-qwen3", "Q8_0").string()});
    expect_error(run_knap(words), 1, "its model differs");
}

}  // namespace
}  // namespace knap::search_test
