// The results of `knap bench`: strategies compared with plain decoding, prompt by prompt, with
// everything needed to run the benchmark again. Plain data; bench_file.h reads and writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "knap/types.h"

#include "tools/measure/load/load_times.h"
#include "tools/measure/prompt_data.h"

namespace knap {

// A prompt to measure.
struct BenchPrompt {
    std::string data;  // the file's name, "built-in" or kSynthetic
    std::string id;    // unique within the data
    std::string task;
    std::optional<int> depth{};  // synthetic prompts only
    std::vector<Token> tokens;   // at least one
    int n_document_tokens = 0;   // length before it was cut
    std::string where{};         // "FILE:3"; empty: not from a file

    bool is_cut() const { return static_cast<int>(tokens.size()) < n_document_tokens; }
};

// Names in rows that stand for no file and for no acceptance rule.
inline constexpr const char* kSynthetic = "synthetic";
inline constexpr const char* kGreedy = "greedy";

// One timed answer of a strategy, with the time of plain decoding measured around it.
struct BenchTurn {
    double decode_ms = 0;
    double plain_ms = 0;  // plain decoding of as many tokens
    int n_generated = 0;
    // The parts of decode_ms.
    double draft_ms = 0;
    double verify_ms = 0;
    double search_ms = 0;
    double other_ms = 0;

    bool operator==(const BenchTurn&) const = default;
};

// Geometric mean over turns, with its 95 % interval when there are several.
struct BenchSpeedup {
    double mean = 0;
    std::optional<double> low{};
    std::optional<double> high{};

    bool operator==(const BenchSpeedup&) const = default;
};

// A plan that drafted, and from which context length on.
struct BenchLevel {
    std::string plan;
    int n_context = 0;
    int n_tokens = 0;

    bool operator==(const BenchLevel&) const = default;
};

// The first position at which a text differs from plain decoding's. In the text of a peer the gap
// is that of libllama's logits between the two tokens, near tie or not.
struct BenchDifference {
    int position = 0;             // from the start of the prompt
    std::optional<double> gap{};  // of the near tie, in logits; nullopt: at the edge of a cut

    bool operator==(const BenchDifference&) const = default;
};

// A strategy with an acceptance rule, or a peer, on a prompt. Counts are those of the last turn.
struct BenchRow {
    std::string data;
    std::string id;
    std::string task;
    std::optional<int> depth{};
    int n_prompt = 0;
    int n_document_tokens = 0;
    bool is_cut = false;
    double prefill_ms = 0;  // includes the adapter's rows if the strategy has an adapter
    std::string strategy;
    std::string options;
    std::string acceptance;
    std::vector<BenchTurn> turns;
    BenchSpeedup speedup;          // decoding only
    BenchSpeedup request_speedup;  // the whole request: prefill and decoding
    double tokens_per_second = 0;
    int rounds = 0;
    int n_drafted = 0;
    int n_accepted = 0;
    std::optional<double> acceptance_rate{};  // nullopt: nothing was drafted
    double mean_accepted_length = 0;
    std::vector<double> acceptance_by_position{};
    std::int64_t peak_memory_bytes = 0;  // of the process so far
    std::optional<double> bandwidth_gb_per_second{};
    double distinct_trigrams = 0;
    std::vector<BenchLevel> levels{};
    std::optional<double> predicted{};
    std::optional<double> measured{};
    int near_ties = 0;
    std::optional<BenchDifference> first_difference{};
    // Whether the text of a peer is libllama's plain text, and ours; nullopt: not compared.
    std::optional<bool> identical_to_libllama{};
    std::optional<bool> identical_to_knap{};
    bool is_projection = false;

    bool is_synthetic() const { return depth.has_value(); }

    bool operator==(const BenchRow&) const = default;
};

// A strategy with an acceptance rule that served all prompts on several sessions at once.
struct BenchLoad {
    std::string strategy;
    std::string options;
    std::string acceptance;
    std::vector<LoadTimes> turns;  // at least one
    BenchSpeedup throughput;       // over plain decoding with as many sessions
    int n_prompts = 0;
    // Prompts with the text that plain decoding writes alone; nullopt: not comparable.
    std::optional<int> n_identical{};
    bool is_projection = false;

    bool operator==(const BenchLoad&) const = default;
};

struct BenchHost {
    std::string cpu;
    int n_cores = 0;
    std::string isa;
    std::int64_t memory_bytes = 0;
    std::string system;

    bool operator==(const BenchHost&) const = default;
};

struct BenchModel {
    std::string file;  // its name
    std::string name;
    std::string architecture;
    int n_layers = 0;
    int n_embd = 0;
    std::int64_t n_parameters = 0;
    std::string types;  // "Q4_1,Q8_0"
    std::int64_t file_bytes = 0;
    std::string fingerprint;

    bool operator==(const BenchModel&) const = default;
};

struct BenchSettings {
    int threads = 0;
    int n_ctx = 0;
    int n_predict = 0;
    int parallel = 1;           // sessions that served the prompts at once
    int limit = 0;              // prompts of each file; 0: all
    int skip = 0;               // prompts of each file that were left out first
    int max_prompt_tokens = 0;  // 0: prompts are not cut
    int repeat = 0;
    std::vector<int> depths;
    std::vector<std::string> strategies;  // plain decoding first
    std::optional<std::string> adapter;   // the file's name
    std::vector<std::string> acceptance;
    SamplingOptions sampling;
    std::optional<double> assume_acceptance;
    std::vector<std::string> peers{};
    std::string cache_type_k;
    std::string cache_type_v;
    std::string kernels;
    // Nullopt: from a file that does not record it.
    std::optional<bool> exact{};
    std::optional<bool> fresh_strategies{};  // every prompt started with new strategies
    std::optional<bool> profile{};  // one was saved, or plans were, and --profile allowed it
    std::optional<bool> memory{};   // strategies began with what earlier runs had learned
    std::vector<std::string> data;

    // Rows of one prompt.
    std::size_t n_rows() const { return (strategies.size() + peers.size()) * acceptance.size(); }

    bool operator==(const BenchSettings&) const = default;
};

// A measured pass of the saved profile.
struct BenchCost {
    std::string plan;
    int n_context = 0;
    int n_rows = 0;
    bool has_head = true;
    double ms = 0;

    bool operator==(const BenchCost&) const = default;
};

struct BenchReport {
    std::string version;
    BenchHost host;
    std::string device;
    BenchModel model;
    BenchSettings settings;
    std::optional<double> memory_gb_per_second{};
    std::vector<BenchCost> costs{};
    bool is_complete = false;
    std::vector<SkippedPrompt> skipped{};
    std::vector<BenchRow> rows{};
    std::vector<BenchLoad> loads{};  // with several sessions at once, else empty

    bool operator==(const BenchReport&) const = default;
};

}  // namespace knap
