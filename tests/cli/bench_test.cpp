// `knap bench` end to end, on a tiny model.
#include <algorithm>
#include <set>

#include <signal.h>

#include "base/text.h"
#include "cli/command.h"
#include "support/baseline.h"
#include "support/gguf_variant.h"
#include "tools/measure/prompt_fit.h"

namespace knap::bench_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

fs::path two_prompts() {
    return write_text("bench.jsonl",
                      "{\"id\": \"a\", \"task\": \"qa\", \"prompt\": \"flint and chert\"}\n"
                      "{\"id\": \"b\", \"task\": \"math\", \"prompt\": \"one two three\"}\n");
}

Words bench_words(const Words& flags) {
    return Words{"bench", "-m", tiny_model("tiny-llama", "Q8_0").string(), "-t", "1", "-c", "256"} +
           Words{"-n", "8", "-r", "2"} + flags;
}

ProcessResult bench(const Words& flags) {
    return run_knap(bench_words(flags));
}

ProcessResult bench_data(const Words& flags) {
    return bench(Words{"--data", two_prompts().string()} + flags);
}

json bench_json(const Words& flags) {
    const auto result = bench(flags + Words{"--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return json::parse(result.output, nullptr, /*allow_exceptions=*/false);
}

std::vector<std::string> column(const json& report, const char* name) {
    std::vector<std::string> values;
    for (const json& row : report["rows"]) {
        values.push_back(row[name].get<std::string>());
    }
    return values;
}

TEST(BenchCommand, MeasuresEveryStrategyOnEveryPrompt) {
    const std::string file = fresh_file("bench.json");
    const std::string table = fresh_file("bench.md");
    const std::string values = fresh_file("bench.csv");
    const auto result = bench_data(
        {"--strategies", "lookup/4,static/3/a=w16+64", "-o", file, "-o", table, "-o", values});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    for (const char* text : {"speedup", "lookup/4", "static/3/a=w16+64", "Means over prompts"}) {
        EXPECT_THAT(result.output, HasSubstr(text));
    }
    const json report = read_json(file);
    EXPECT_EQ(report["is_complete"], true);
    EXPECT_EQ(report["format"], 1);
    EXPECT_EQ(report["settings"]["strategies"],
              (json{"autoregressive", "lookup/4", "static/3/a=w16+64"}));
    EXPECT_EQ(report["settings"]["data"], json{"bench.jsonl"});
    EXPECT_GT(report["memory_gb_per_second"], 0);
    ASSERT_EQ(report["rows"].size(), 6u);
    EXPECT_THAT(column(report, "id"), testing::ElementsAre("a", "a", "a", "b", "b", "b"));
    for (const json& row : report["rows"]) {
        EXPECT_EQ(row["turns"].size(), 2u);
        EXPECT_EQ(row["acceptance"], "greedy");
        EXPECT_TRUE(row["first_difference"].is_null()) << "Q8_0 weights are computed exactly";
        EXPECT_GT(row["tokens_per_second"], 0);
        EXPECT_GT(row["prefill_ms"], 0);
    }
    EXPECT_EQ(report["rows"][2]["options"], "plan=a=w16+64 draft_max=3");
    EXPECT_GT(report["rows"][2]["n_drafted"], 0);
    EXPECT_THAT(read_text(table), HasSubstr("| static/3/a=w16+64 |"));
    EXPECT_THAT(read_text(values), HasSubstr("bench.jsonl,a,qa,"));
}

TEST(BenchCommand, StrategiesLearnFromPromptToPromptUnlessTheyStartAfresh) {
    // Only its first draft is long.
    const Words flags{"--data", two_prompts().string(), "--strategies",
                      "lookup,draft-verify(exit-confidence=0;target=1;eps=1;beta2=0)/4/exit=1"};
    const auto has_long_drafts = [](const json& row) { return row["n_drafted"] > row["rounds"]; };
    const json lasting = bench_json(flags);
    EXPECT_EQ(lasting["settings"]["fresh_strategies"], false);
    EXPECT_TRUE(has_long_drafts(lasting["rows"][2]));
    EXPECT_FALSE(has_long_drafts(lasting["rows"][5]));
    const json fresh = bench_json(flags + Words{"--fresh-strategies"});
    EXPECT_EQ(fresh["settings"]["fresh_strategies"], true);
    EXPECT_TRUE(has_long_drafts(fresh["rows"][2]));
    EXPECT_TRUE(has_long_drafts(fresh["rows"][5]));
}

TEST(BenchCommand, DepthsAreSyntheticPromptsOfThatLength) {
    const json report = bench_json({"-d", "16,100,100,250", "--strategies", "lookup"});
    ASSERT_EQ(report["rows"].size(), 4u);
    EXPECT_EQ(report["rows"][0]["depth"], 16);
    EXPECT_EQ(report["rows"][2]["depth"], 100);
    EXPECT_EQ(report["rows"][2]["n_prompt"], 100);
    EXPECT_EQ(report["rows"][2]["data"], "synthetic");
    EXPECT_EQ(report["rows"][2]["turns"][0]["n_generated"], 8);
    ASSERT_EQ(report["skipped"].size(), 1u);
    EXPECT_EQ(report["skipped"][0]["where"], "synthetic: depth 250");
    EXPECT_EQ(report["settings"]["data"], json::array());
}

TEST(BenchCommand, AcceptanceRulesAreAnAxis) {
    const json report =
        bench_json({"--data", two_prompts().string(), "--limit", "1", "--strategies", "lookup",
                    "--temp", "0.7", "--top-k", "50", "--acceptance", "shared-noise,ratio"});
    EXPECT_THAT(column(report, "acceptance"),
                testing::ElementsAre("shared-noise", "shared-noise", "ratio", "ratio"));
    EXPECT_EQ(report["settings"]["temperature"], 0.7);
    EXPECT_EQ(report["settings"]["acceptance"], (json{"shared-noise", "ratio"}));
}

TEST(BenchCommand, ProjectionsAreMarkedEverywhere) {
    const std::string table = fresh_file("projection.md");
    const json report = bench_json(
        {"-d", "32", "--strategies", "static/4/exit=2", "--assume-acceptance", "0.8", "-o", table});
    EXPECT_EQ(report["settings"]["assume_acceptance"], 0.8);
    EXPECT_EQ(report["rows"][1]["is_projection"], true);
    EXPECT_THAT(read_text(table), HasSubstr("**Projection"));
    EXPECT_THAT(read_text(table), HasSubstr("x projected"));
}

TEST(BenchCommand, LibllamaIsARow) {
    const json report = bench_json({"-d", "32", "--strategies", "lookup", "--peer", "llama"});
    EXPECT_THAT(column(report, "strategy"),
                testing::ElementsAre("autoregressive", "lookup", "llama"));
    EXPECT_THAT(report["rows"][2]["options"], testing::AnyOf("flash=off", "flash=on"));
    EXPECT_EQ(report["rows"][2]["turns"].size(), 2u);
    EXPECT_GT(report["rows"][2]["prefill_ms"], 0);
}

TEST(BenchCommand, DraftsOfLlamaCppAreRows) {
    const std::string file = fresh_file("peers.json");
    const std::string table = fresh_file("peers.md");
    const auto result = bench({"-d", "32", "--strategies", "lookup", "--peer",
                               "llama,ngram-cache,llama,ngram-mod", "-o", file, "-o", table});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("Texts of peers"));
    const json report = read_json(file);
    EXPECT_EQ(report["settings"]["peer"], "llama,ngram-cache,ngram-mod");
    EXPECT_THAT(
        column(report, "strategy"),
        testing::ElementsAre("autoregressive", "lookup", "llama", "ngram-cache", "ngram-mod"));
    const json& row = report["rows"][3];
    EXPECT_TRUE(row["identical_to_libllama"].is_boolean());
    EXPECT_TRUE(row["identical_to_knap"].is_boolean());
    EXPECT_GT(row["mean_accepted_length"], 0);
    EXPECT_TRUE(report["rows"][1]["identical_to_knap"].is_null());
    EXPECT_THAT(read_text(table), HasSubstr("## Texts of peers"));
    const std::string page = fresh_file("peers.html");
    ASSERT_EQ(run_knap({"report", file, "-o", page}).exit_code, 0);
    EXPECT_THAT(read_text(page), HasSubstr("<h2>Texts of peers</h2>"));
    EXPECT_THAT(read_text(page), HasSubstr("--peer llama,ngram-cache,ngram-mod"));
    EXPECT_EQ(bench({"-d", "32", "--strategies", "lookup", "--peer", "llama,ngram-cache,ngram-mod",
                     "--resume", file})
                  .exit_code,
              0);
}

// Six prompts, of which two at a time are served.
TEST(BenchCommand, ServesSeveralPromptsAtOnce) {
    std::string lines;
    for (const char* text : {"flint", "flint and chert", "one two three", "a", "core", "flake"}) {
        lines += concat("{\"prompt\": \"", text, "\"}\n");
    }
    const std::string file = fresh_file("parallel.json");
    const std::string table = fresh_file("parallel.md");
    const std::string values = fresh_file("parallel.csv");
    const auto result =
        bench({"--data", write_text("six.jsonl", lines).string(), "--parallel", "2", "--strategies",
               "lookup,knapspec", "--peer", "llama", "-o", file, "-o", table, "-o", values});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("2 sessions at once"));
    EXPECT_THAT(result.output, HasSubstr("6 of 6"));
    const json report = read_json(file);
    EXPECT_EQ(report["is_complete"], true);
    EXPECT_EQ(report["settings"]["parallel"], 2);
    EXPECT_EQ(report["rows"].size(), 24u);
    for (const json& row : report["rows"]) {
        EXPECT_EQ(row["turns"].size(), 2u);
        EXPECT_TRUE(row["first_difference"].is_null()) << "Q8_0 weights are computed exactly";
    }
    ASSERT_EQ(report["loads"].size(), 4u);
    for (const json& load : report["loads"]) {
        const bool is_peer = load["strategy"] == "llama";
        EXPECT_EQ(load["n_identical"], is_peer ? json() : json(6));
        EXPECT_EQ(load["turns"].size(), 2u);
        EXPECT_EQ(load["turns"][0]["n_tokens"], report["loads"][0]["turns"][0]["n_tokens"]);
        EXPECT_GT(load["throughput"]["mean"], 0);
    }
    EXPECT_THAT(read_text(table), HasSubstr("## 2 sessions at once"));
    EXPECT_THAT(read_text(values), HasSubstr(",parallel,throughput,"));
    const std::string page = fresh_file("parallel.html");
    EXPECT_EQ(run_knap({"report", file, "-o", page}).exit_code, 0);
}

TEST(BenchCommand, LongPromptsAreCutOrSkipped) {
    std::string words;
    for (int i = 0; i < 400; ++i) {
        words += "flint ";
    }
    const auto data =
        write_text("long.jsonl", "{\"prompt\": \"Read.\\n\\n" + words +
                                     "\\n\\nWhat?\"}\nnonsense\n{\"prompt\": \"short\"}\n");
    const json cut = bench_json(
        {"--data", data.string(), "--strategies", "lookup", "--max-prompt-tokens", "64"});
    ASSERT_EQ(cut["rows"].size(), 4u);
    EXPECT_EQ(cut["rows"][0]["is_cut"], true);
    EXPECT_LE(cut["rows"][0]["n_prompt"], 64);
    EXPECT_GT(cut["rows"][0]["n_document_tokens"], 400);
    EXPECT_EQ(cut["rows"][2]["is_cut"], false);
    ASSERT_EQ(cut["skipped"].size(), 1u);
    EXPECT_THAT(cut["skipped"][0]["where"].get<std::string>(), HasSubstr("long.jsonl:2"));

    const auto result = bench({"--data", data.string(), "--strategies", "lookup", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, HasSubstr("long.jsonl:1: expected at most 248 tokens"));
    EXPECT_EQ(json::parse(result.output)["skipped"].size(), 2u);
}

// The tiny model, changed so that the first token of its answer to the first of two_prompts() is an
// end-of-generation token.
fs::path model_that_ends() {
    const fs::path model = tiny_model("tiny-llama", "Q8_0");
    Engine engine({.model_path = model, .n_ctx = 256, .n_threads = 1});
    Session session(engine);
    const Result answer = test::plain_text(
        session, fit_prompt(engine, "flint and chert", 128).tokens, {.n_predict = 1});
    test::GgufVariant variant(model);
    gguf_set_val_u32(variant.metadata(), "tokenizer.ggml.eos_token_id",
                     static_cast<std::uint32_t>(answer.tokens.at(0)));
    return variant.write("ends.gguf");
}

TEST(BenchCommand, EmptyAnswerIsSkippedWithAWarning) {
    const std::string file = fresh_file("ends.json");
    const Words flags{"-m", model_that_ends().string(), "--strategies", "lookup", "-o", file};
    const auto result = bench_data(flags);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, HasSubstr("bench.jsonl:1: expected an answer of two tokens or more, "
                                        "found one of 0; the prompt is skipped\n"));
    const json report = read_json(file);
    EXPECT_EQ(report["skipped"].size(), 1u);
    EXPECT_THAT(column(report, "id"), testing::ElementsAre("b", "b"));
    EXPECT_EQ(bench_data(flags + Words{"--resume", file}).exit_code, 0);
}

TEST(BenchCommand, BuiltinPromptsFillTheContext) {
    const json report = bench_json({"-n", "2", "-r", "1", "--strategies", "lookup"});
    EXPECT_EQ(report["settings"]["data"], json{"built-in"});
    std::set<std::string> tasks;
    int longest = 0;
    for (const json& row : report["rows"]) {
        tasks.insert(row["task"].get<std::string>());
        longest = std::max(longest, row["n_prompt"].get<int>());
    }
    EXPECT_GE(tasks.size(), 4u);
    EXPECT_THAT(column(report, "id"), testing::Contains("document-254"));
    EXPECT_THAT(column(report, "id"), testing::Contains("source-254"));
    EXPECT_GT(longest, 200);
    EXPECT_LE(longest, 254);
    EXPECT_EQ(bench_json({"-n", "2", "-r", "1", "--limit", "2"})["rows"].size(), 6u);
}

TEST(BenchCommand, PromptsThatWereTunedOnCanBeLeftOut) {
    const json report =
        bench_json({"--data", two_prompts().string(), "--skip", "1", "--strategies", "lookup"});
    EXPECT_EQ(report["settings"]["skip"], 1);
    EXPECT_THAT(column(report, "id"), testing::ElementsAre("b", "b"));
    const Words short_ones{"-n", "2", "-r", "1", "--limit", "2", "--strategies", "lookup"};
    const auto first = column(bench_json(short_ones), "id");
    const auto second = column(bench_json(short_ones + Words{"--skip", "1"}), "id");
    ASSERT_EQ(second.size(), 4u);
    EXPECT_EQ(first[2], second[0]);
    expect_error(bench_data({"--skip", "2"}), 1, "expected more than the 2 prompts of --skip");
}

TEST(BenchCommand, TellsWhetherRunsBeganWithMemory) {
    const json without = bench_json({"--limit", "1", "--strategies", "lookup"});
    EXPECT_EQ(without["settings"]["memory"], false);
    EXPECT_EQ(without["settings"]["profile"], false);
    const fs::path folder = temporary_folder() / "bench_memory";
    ProcessRequest request;
    request.arguments = bench_words({"--data", two_prompts().string(), "--memory", "on", "-n", "60",
                                     "--strategies", "knapspec,knapspec(memory=off)"}) +
                        Words{"--json"};
    request.environment = {{"KNAP_CACHE_DIR", folder.string()}};
    for (int run = 0; run < 2; ++run) {
        const auto result = run_knap(request);
        ASSERT_EQ(result.exit_code, 0) << result.error;
        const json report = json::parse(result.output);
        EXPECT_EQ(report["settings"]["memory"], true);
        EXPECT_EQ(report["rows"][2]["options"], "memory=off");
    }
    EXPECT_FALSE(fs::is_empty(folder));
    fs::remove_all(folder);
}

TEST(BenchCommand, ResumeMeasuresTheMissingRows) {
    const std::string file = fresh_file("resumed.json");
    ASSERT_EQ(bench_data({"-o", file}).exit_code, 0);
    json report = read_json(file);
    const json whole = report;
    report["rows"].erase(report["rows"].begin() + 3, report["rows"].end());
    report["is_complete"] = false;
    write_text("resumed.json", report.dump());
    const auto result = bench_data({"--resume", file, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json resumed = read_json(file);
    EXPECT_EQ(json::parse(result.output), resumed);
    EXPECT_EQ(resumed["is_complete"], true);
    EXPECT_EQ(resumed["memory_gb_per_second"], whole["memory_gb_per_second"]);
    ASSERT_EQ(resumed["rows"].size(), 6u);
    EXPECT_EQ(column(resumed, "id"), column(whole, "id"));
    EXPECT_EQ(column(resumed, "strategy"), column(whole, "strategy"));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(resumed["rows"][i], whole["rows"][i]);
    }
}

TEST(BenchCommand, AFileOfAnotherBenchmarkIsRefusedAndKept) {
    const std::string file = fresh_file("other_bench.json");
    ASSERT_EQ(bench_data({"-o", file, "--limit", "1"}).exit_code, 0);
    const std::string before = read_text(file);
    expect_error(bench_data({"--resume", file, "--limit", "1", "-r", "3"}), 1,
                 "its `settings.repeat` differs: expected '3', found '2'");
    expect_error(bench_data({"--resume", file, "--limit", "1", "--fresh-strategies"}), 1,
                 "its `settings.fresh_strategies` differs: expected 'true', found 'false'");
    expect_error(bench_data({"--resume", file, "--limit", "1", "--skip", "1"}), 1,
                 "its `settings.skip` differs: expected '1', found '0'");
    expect_error(bench_data({"--resume", file, "--limit", "1", "--exact", "off"}), 1,
                 "its `settings.exact` differs: expected 'false', found 'true'");
    expect_error(bench_data({"--resume", "/no/such/file.json"}), 1, "found no such file");
    EXPECT_EQ(read_text(file), before);
}

TEST(BenchCommand, CtrlCKeepsTheRowsAndTellsHowToResume) {
    const std::string file = fresh_file("interrupted_bench.json");
    ProcessRequest request;
    request.arguments = bench_words(
        {"--data", two_prompts().string(), "-r", "20000", "-o", file, "--strategies", "lookup"});
    request.is_on_terminal = true;
    request.signals = {{SIGINT, " left"}};
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 130) << result.output;
    EXPECT_THAT(result.output,
                HasSubstr("interrupted after 0 of 2 prompts; they are kept in " + file));
    EXPECT_THAT(result.output, HasSubstr("the same command with --resume " + file));
    EXPECT_EQ(read_json(file)["is_complete"], false);
}

TEST(BenchCommand, BadFlagsAreRefused) {
    expect_error(bench({"--strategies", "luck"}), 2, "--strategies: expected autoregressive|");
    expect_error(bench({"--strategies", "lookup,,"}), 2,
                 "--strategies: expected a comma-separated list");
    expect_error(bench({"--acceptance", "ratio"}), 2, "--acceptance: expected --temp above 0");
    expect_error(bench({"--temp", "1", "--acceptance", "luck"}), 2,
                 "--acceptance: expected shared-noise|ratio|equality, found 'luck'");
    expect_error(bench({"--peer", "llama,vllm"}), 2,
                 "--peer: expected none or a list of llama|ngram-simple|ngram-map-k|ngram-map-k4v|"
                 "ngram-mod|ngram-cache, found 'vllm'");
    expect_error(bench({"--peer", "none,llama"}), 2, "found 'none'");
    expect_error(bench({"--peer", "llama,ngram-mod", "--parallel", "2"}), 2,
                 "--peer: expected none or llama with --parallel 2, because other peers answer one "
                 "prompt at a time, found 'ngram-mod'");
    expect_error(bench({"-o", "out.txt"}), 2, "expected a file that ends in .json, .csv or .md");
    expect_error(bench({"--skip", "-1"}), 2, "--skip: expected a whole number of at least 0");
    expect_error(bench({"-n", "1"}), 2, "--n-predict: expected a whole number of at least 2");
    expect_error(bench({"-r", "0"}), 2, "--repeat: expected a whole number of at least 1");
    expect_error(bench({"--parallel", "0"}), 2,
                 "--parallel: expected a whole number from 1 to 256");
    expect_error(bench({"--parallel", "257"}), 2, "--parallel: expected a whole number from 1 to");
    expect_error(bench({"--parallel", "two"}), 2, "--parallel: expected a whole number");
    expect_error(bench({"--parallel", "2", "--resume", "some.json"}), 2,
                 "--resume: expected --parallel 1, because prompts are measured together, found 2");
    expect_error(bench({"-d", "0"}), 2, "--n-depth: expected a whole number of at least 1");
    expect_error(bench({"-o", "/no/such/folder/out.json"}), 1, "/no/such/folder");
    expect_error(bench({"--data", "/no/such/file"}), 1, "/no/such/file");
    expect_error(bench({"-n", "300"}), 1, "-n: expected fewer tokens than the context of 256");
    const auto twin = temporary_folder() / "twin";
    fs::create_directories(twin);
    fs::copy_file(two_prompts(), twin / "bench.jsonl", fs::copy_options::overwrite_existing);
    expect_error(bench_data({"--data", (twin / "bench.jsonl").string()}), 1,
                 "--data: expected files of different names");
}

}  // namespace
}  // namespace knap::bench_test
