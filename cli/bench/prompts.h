// The prompts of `knap bench`: those of files, our own where there are none, and synthetic ones.
#pragma once

#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"

namespace knap {

// A file of prompts as it was read.
struct BenchData {
    std::string name;  // of the file
    PromptData content;
};

// Sources as read_prompt_source() takes them, `limit` prompts of each. Throws also where two
// different files have one name, by which rows are told apart.
std::vector<BenchData> read_bench_data(const std::vector<std::string>& sources, int limit);

struct BenchPrompts {
    std::vector<BenchPrompt> prompts;
    std::vector<SkippedPrompt> skipped;  // with a warning each
};

// Says that a prompt is not measured, and why.
void log_skipped(const SkippedPrompt& prompt);

// Collects what fits the model: a prompt and an answer of `n_predict` tokens in its context. What
// does not is skipped.
class BenchPromptCollector {
  public:
    // `max_prompt_tokens`: longer prompts lose the end of their document; 0: none is cut. The
    // engine must outlive it.
    BenchPromptCollector(const Engine& engine, int n_predict, int max_prompt_tokens);

    void add_data(const BenchData& data);
    // Short ones of several tasks, and a document and a source cut to lengths up to the context's.
    // At most `limit`; 0: all.
    void add_builtin(int limit);
    // The first `depth` tokens of a text, which is repeated where it is shorter.
    void add_synthetic(int depth);

    BenchPrompts take() { return std::move(collected_); }

  private:
    // Whether it was added, and not cut.
    bool add_text(const std::string& data, const DataPrompt& prompt, int n_max);
    void add_lengths(const DataPrompt& prompt);
    void add(BenchPrompt prompt);
    void skip(const std::string& where, const std::string& why);

    const Engine& engine_;
    int n_room_;
    int n_longest_;  // n_room_, or what prompts are cut to
    bool is_cutting_;
    BenchPrompts collected_;
};

inline constexpr const char* kBuiltinData = "built-in";

}  // namespace knap
