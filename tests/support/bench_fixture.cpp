#include "support/bench_fixture.h"

#include <cmath>

#include "base/text.h"

namespace knap {
namespace {

using nlohmann::json;

constexpr int kGenerated = 128;
constexpr double kPlainMs = 5;  // per token
constexpr double kPrefillMs = 450;

bool drafts(const std::string& strategy) {
    return strategy != "autoregressive" && strategy != "llama";
}

bool drafts_with_parts(const std::string& strategy) {
    return drafts(strategy) && strategy != "lookup";
}

// Different for every row, but the same in every run.
double wobble(std::size_t seed) {
    return 0.08 * std::sin(1.7 * static_cast<double>(seed));
}

// Windows help at long contexts; copies help a little everywhere.
double speedup_of(const std::string& strategy, int n_context, std::size_t seed) {
    const double gain = !drafts(strategy)             ? 0
                        : strategy == "knapspec"      ? 0.1 + n_context / 16000.0
                        : drafts_with_parts(strategy) ? -0.1
                                                      : 0.15;
    return 1 + gain + wobble(seed);
}

json turn(const std::string& strategy, double speedup) {
    const double plain_ms = kGenerated * kPlainMs;
    const double ms = plain_ms / speedup;
    const double draft = drafts_with_parts(strategy) ? 0.3 : 0;
    const double search = drafts_with_parts(strategy) ? 0.05 : 0;
    return {{"decode_ms", ms},
            {"plain_ms", plain_ms},
            {"n_generated", kGenerated},
            {"draft_ms", draft * ms},
            {"verify_ms", (0.95 - draft - search) * ms},
            {"search_ms", search * ms},
            {"other_ms", 0.05 * ms}};
}

json request(double speedup) {
    const double plain_ms = kGenerated * kPlainMs;
    const double mean = (kPrefillMs + plain_ms) / (kPrefillMs + plain_ms / speedup);
    return {{"mean", mean}, {"low", 0.97 * mean}, {"high", 1.03 * mean}};
}

json levels(const std::string& strategy, int n_context) {
    if (!drafts_with_parts(strategy)) {
        return json::array();
    }
    const char* plan = strategy == "knapspec" ? "a=w16+256" : "a3-7=skip,m5=skip";
    return json::array({{{"plan", plan}, {"n_context", n_context + 28}, {"n_tokens", 100}}});
}

void place_row(json& row, const std::string& data, const std::string& id, int n_context) {
    row["data"] = data;
    row["id"] = id;
    row["n_prompt"] = n_context;
    row["levels"] = levels(row["strategy"], n_context);
}

json rows_of_tasks(const BenchFixture& fixture) {
    json rows = json::array();
    for (std::size_t i = 0; i < fixture.tasks.size(); ++i) {
        const auto colon = fixture.tasks[i].find(':');
        const std::string data = fixture.tasks[i].substr(0, colon);
        const std::string task =
            colon == std::string::npos ? "summarisation" : fixture.tasks[i].substr(colon + 1);
        for (int prompt = 0; prompt < fixture.n_prompts; ++prompt) {
            const int n_context = 150 << (2 * (i % 3) + static_cast<std::size_t>(prompt) % 2);
            for (const std::string& strategy : fixture.strategies) {
                json row = bench_row(strategy, task, speedup_of(strategy, n_context, rows.size()));
                place_row(row, data, concat(task, "-", prompt), n_context);
                rows.push_back(std::move(row));
            }
        }
    }
    return rows;
}

void add_depths(json& rows, const BenchFixture& fixture) {
    for (const int depth : fixture.depths) {
        for (const std::string& strategy : fixture.strategies) {
            json row = bench_row(strategy, "synthetic", speedup_of(strategy, depth, rows.size()));
            place_row(row, "synthetic", concat("depth-", depth), depth);
            row["depth"] = depth;
            rows.push_back(std::move(row));
        }
    }
}

json costs() {
    json list = json::array();
    for (const int n_context : {128, 1024, 8192}) {
        for (const int n_rows : {1, 2, 4, 8}) {
            list.push_back({{"plan", "full"},
                            {"n_context", n_context},
                            {"n_rows", n_rows},
                            {"has_head", true},
                            {"ms", 3 + n_context / 2000.0 + n_rows}});
        }
        list.push_back({{"plan", "a=w16+64"},
                        {"n_context", n_context},
                        {"n_rows", 1},
                        {"has_head", true},
                        {"ms", 2.5}});
    }
    return list;
}

json settings(const BenchFixture& fixture) {
    json data = json::array();
    for (const std::string& task : fixture.tasks) {
        const std::string file = task.substr(0, task.find(':'));
        if (data.empty() || data.back() != file) {
            data.push_back(file);
        }
    }
    return {{"threads", 2},
            {"n_ctx", 8192},
            {"n_predict", kGenerated},
            {"limit", fixture.n_prompts},
            {"max_prompt_tokens", 0},
            {"repeat", 3},
            {"depths", fixture.depths},
            {"strategies", fixture.strategies},
            {"adapter", nullptr},
            {"acceptance", {"greedy"}},
            {"temperature", 0},
            {"top_k", 40},
            {"top_p", 0.95},
            {"min_p", 0.05},
            {"seed", 0},
            {"assume_acceptance", fixture.has_projections ? json(0.8) : json()},
            {"peer", nullptr},
            {"cache_type_k", "f16"},
            {"cache_type_v", "f16"},
            {"kernels", "auto"},
            {"exact", true},
            {"fresh_strategies", false},
            {"data", data}};
}

json model(const BenchFixture& fixture) {
    return {{"file", "model.gguf"},
            {"name", fixture.model_name},
            {"architecture", fixture.architecture},
            {"n_layers", fixture.n_layers},
            {"n_embd", fixture.n_embd},
            {"n_parameters", 134515008},
            {"types", "Q4_1,Q8_0"},
            {"file_bytes", 98000000},
            {"fingerprint", "a04c7f572386404c"}};
}

}  // namespace

json bench_row(const std::string& strategy, const std::string& task, double speedup) {
    const bool is_draft = drafts(strategy);
    const bool predicts = strategy == "knapspec";
    return {{"data", "data.jsonl"},
            {"id", "1"},
            {"task", task},
            {"depth", nullptr},
            {"n_prompt", 500},
            {"n_document_tokens", 500},
            {"is_cut", false},
            {"prefill_ms", kPrefillMs},
            {"strategy", strategy},
            {"options", ""},
            {"acceptance", "greedy"},
            {"turns", {turn(strategy, 0.98 * speedup), turn(strategy, 1.02 * speedup)}},
            {"speedup", {{"mean", speedup}, {"low", 0.95 * speedup}, {"high", 1.05 * speedup}}},
            {"request_speedup", request(speedup)},
            {"tokens_per_second", 1000 / kPlainMs * speedup},
            {"rounds", is_draft ? 60 : kGenerated - 1},
            {"n_drafted", is_draft ? 90 : 0},
            {"n_accepted", is_draft ? 63 : 0},
            {"acceptance_rate", is_draft ? json(0.7) : json()},
            {"mean_accepted_length", is_draft ? 2.1 : 1.0},
            {"acceptance_by_position", is_draft ? json({0.8, 0.7, 0.5}) : json::array()},
            {"peak_memory_bytes", 300000000},
            {"bandwidth_gb_per_second", 20.0},
            {"distinct_trigrams", 0.93},
            {"levels", json::array()},
            {"predicted", predicts ? json(1.1 * speedup) : json()},
            {"measured", predicts ? json(speedup) : json()},
            {"near_ties", 0},
            {"first_difference", nullptr},
            {"is_projection", false}};
}

json bench_fixture(const BenchFixture& fixture) {
    json rows = rows_of_tasks(fixture);
    add_depths(rows, fixture);
    for (json& row : rows) {
        row["is_projection"] = fixture.has_projections && drafts_with_parts(row["strategy"]);
    }
    if (!fixture.is_complete) {
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), rows.end());
    }
    return {{"format", 1},
            {"knap", "0.1.0"},
            {"host",
             {{"cpu", "a processor"},
              {"n_cores", 2},
              {"isa", "avx512"},
              {"memory_bytes", 16000000000},
              {"system", "Linux"}}},
            {"device", "CPU"},
            {"model", model(fixture)},
            {"settings", settings(fixture)},
            {"memory_gb_per_second", 40.0},
            {"costs", fixture.has_costs ? costs() : json::array()},
            {"is_complete", fixture.is_complete},
            {"skipped", {{{"where", "pg19.jsonl:7"}, {"why", "9210 tokens are too many"}}}},
            {"rows", rows}};
}

}  // namespace knap
