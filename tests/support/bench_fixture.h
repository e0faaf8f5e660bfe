// Files of `knap bench`, made up: for tests of what reads them. Written out rather than made by
// to_json(), because names of fields are a promise.
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
    // Of data files; "specbench.jsonl:qa" names the task as well.
    std::vector<std::string> tasks{"govreport.jsonl", "pg19.jsonl", "specbench.jsonl:qa",
                                   "specbench.jsonl:coding"};
    int n_prompts = 3;  // of each task
    std::vector<int> depths{0, 512, 4096};
    bool has_projections = false;  // of every strategy that drafts with parts of the model
    bool has_costs = true;
    bool is_complete = true;  // false: the last half of the rows is missing
};

nlohmann::json bench_fixture(const BenchFixture& fixture = {});

// A row of it with everything that a row has, for tests that set some of it.
nlohmann::json bench_row(const std::string& strategy, const std::string& task, double speedup);

}  // namespace knap
