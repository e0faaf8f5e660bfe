// Made-up files of `knap bench`, for tests of their readers. They are written out rather than
// produced by to_json(), because field names must not change.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace knap {

struct BenchFixture {
    std::string model_name = "SmolLM2-135M-Instruct";
    std::string architecture = "llama";
    int n_layers = 30;
    int n_embd = 576;
    std::vector<std::string> strategies{"autoregressive", "lookup", "knapspec", "swift"};
    // Data files. "specbench.jsonl:qa" also names the task.
    std::vector<std::string> tasks{"govreport.jsonl", "pg19.jsonl", "specbench.jsonl:qa",
                                   "specbench.jsonl:coding"};
    int n_prompts = 3;  // per task
    std::vector<int> depths{0, 512, 4096};
    bool has_projections = false;  // for every strategy that drafts with parts of the model
    bool has_costs = true;
    bool is_complete = true;  // false: the second half of the rows is missing
};

nlohmann::json bench_fixture(const BenchFixture& fixture = {});

// A complete row, for tests that change some of its fields.
nlohmann::json bench_row(const std::string& strategy, const std::string& task, double speedup);

}  // namespace knap
