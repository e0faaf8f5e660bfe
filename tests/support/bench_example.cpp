#include "support/bench_example.h"

namespace knap::test {

BenchRow example_row(const std::string& strategy) {
    return {.data = "data.jsonl",
            .id = "p1",
            .task = "qa, with \"quotes\" | bars",
            .depth = std::nullopt,
            .n_prompt = 20,
            .n_document_tokens = 31,
            .is_cut = true,
            .prefill_ms = 12.5,
            .strategy = strategy,
            .options = "draft_max=4",
            .acceptance = "greedy",
            .turns = {{100, 150, 9, 10, 60, 20, 10}, {110, 160, 9, 12, 64, 22, 12}},
            .speedup = {.mean = 1.477, .low = 1.2, .high = 1.8},
            .request_speedup = {.mean = 1.423, .low = 1.1, .high = 1.7},
            .tokens_per_second = 76.2,
            .rounds = 5,
            .n_drafted = 8,
            .n_accepted = 4,
            .acceptance_rate = 0.5,
            .mean_accepted_length = 1.6,
            .acceptance_by_position = {0.75, 0.25},
            .peak_memory_bytes = 123456789,
            .bandwidth_gb_per_second = 7.25,
            .distinct_trigrams = 0.875,
            .levels = {{"a=w16+256", 24, 5}},
            .predicted = 1.4,
            .measured = 1.3,
            .near_ties = 2,
            .first_difference = BenchDifference{.position = 27, .gap = 0.125},
            .is_projection = false};
}

BenchLoad example_load(const std::string& strategy) {
    return {.strategy = strategy,
            .options = "draft_max=4",
            .acceptance = "greedy",
            .turns = {{18, 120, 150, 20, 31, 2.5, 4.5, 9}, {18, 90, 200, 24, 33, 3.5, 5.5, 7}},
            .throughput = {.mean = 1.25, .low = 1.1, .high = 1.4},
            .n_prompts = 2,
            .n_identical = 1};
}

BenchReport example_report() {
    BenchReport report{.version = "0.1.0",
                       .host = {"A CPU", 2, "avx512", 8000000000, "Linux 6.1"},
                       .device = "A CPU",
                       .model = {"m.gguf", "m", "llama", 4, 64, 1000, "F32", 4096, "00ff"},
                       .settings = {.threads = 2,
                                    .n_ctx = 256,
                                    .n_predict = 8,
                                    .repeat = 2,
                                    .strategies = {"autoregressive", "lookup"},
                                    .acceptance = {"greedy"},
                                    .cache_type_k = "f16",
                                    .cache_type_v = "f16",
                                    .kernels = "auto",
                                    .exact = true,
                                    .fresh_strategies = false,
                                    .data = {"data.jsonl"}},
                       .memory_gb_per_second = 30.5,
                       .costs = {{"full", 16, 1, true, 3.5}},
                       .is_complete = true};
    for (const char* id : {"p1", "p2"}) {
        for (const std::string& strategy : report.settings.strategies) {
            report.rows.push_back(example_row(strategy));
            report.rows.back().id = id;
        }
    }
    return report;
}

BenchPrompt synthetic_prompt(const Engine& engine, const std::string& text) {
    const std::vector<Token> tokens = engine.tokenize(text);
    const auto n_tokens = static_cast<int>(tokens.size());
    return {.data = kSynthetic,
            .id = kSynthetic,
            .depth = n_tokens,
            .tokens = tokens,
            .n_document_tokens = n_tokens};
}

}  // namespace knap::test
