// `knap bench` on five prompts with the default model.
#include "knap/knap.h"

#include "cli/command.h"
#include "support/default_model.h"

namespace knap::bench_with_model_test {
namespace {

using nlohmann::json;

std::filesystem::path five_prompts() {
    std::string lines;
    for (const char* prompt :
         {"Why is the sky blue?", "Count from one to ten.", "Name three colours.",
          "Repeat this word for word: The old bridge is closed to carts until June.",
          "What is 12 plus 7?"}) {
        lines += json{{"task", "short"}, {"prompt", prompt}}.dump() + "\n";
    }
    return write_text("five.jsonl", lines);
}

// `knap bench` without data cuts these texts to its prompt lengths.
TEST(BenchWithModel, BuiltinTextsFillAContextOf8K) {
    const std::filesystem::path folder = KNAP_ROOT "/cli/bench/texts";
    Engine engine({.model_path = test::default_model(), .n_ctx = 64});
    for (const char* name : {"document.txt", "source.txt"}) {
        EXPECT_GT(engine.tokenize(read_text(folder / name)).size(), 8192u) << name;
    }
}

TEST(BenchWithModel, FivePromptsGiveARowForEveryStrategy) {
    ProcessRequest request;
    request.arguments = {"bench",
                         "-m",
                         test::default_model().string(),
                         "--data",
                         five_prompts().string(),
                         "-c",
                         "512",
                         "-n",
                         "16",
                         "-r",
                         "2",
                         "--strategies",
                         "lookup,knapspec",
                         "--peer",
                         "llama",
                         "--json"};
    request.timeout_s = 600;
    const auto result = run_knap(request);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json report = json::parse(result.output);
    EXPECT_EQ(report["is_complete"], true);
    EXPECT_EQ(report["skipped"], json::array());
    EXPECT_EQ(report["model"]["n_layers"], 30);
    ASSERT_EQ(report["rows"].size(), 20u);
    for (const json& row : report["rows"]) {
        EXPECT_GT(row["speedup"]["mean"], 0);
        EXPECT_LE(row["speedup"]["low"], row["speedup"]["mean"]);
        EXPECT_EQ(row["turns"].size(), 2u);
        EXPECT_TRUE(row["first_difference"].is_null()) << "Q4_1 is computed exactly";
    }
}

}  // namespace
}  // namespace knap::bench_with_model_test
