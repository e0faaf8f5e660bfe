// The prompts of `knap bench`: from files, built in if there are none, and synthetic.
#pragma once

#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"

namespace knap {

// The content of a file of prompts.
struct BenchData {
    std::string name;  // the file's name, without its folder
    PromptData content;
};

// Reads `limit` prompts (0: all) of each source after the first `skip`, see read_prompt_source().
// Also throws when two different files have the same name, because rows are identified by it.
std::vector<BenchData> read_bench_data(const std::vector<std::string>& sources,
                                       int limit,
                                       int skip);

struct BenchPrompts {
    std::vector<BenchPrompt> prompts;
    std::vector<SkippedPrompt> skipped;  // a warning was logged for each
};

// Logs a warning that a prompt is skipped, and why.
void log_skipped(const SkippedPrompt& prompt);

// Collects prompts. Skips those that do not fit the context together with an answer of `n_predict`
// tokens.
class BenchPromptCollector {
  public:
    // `max_prompt_tokens`: longer prompts lose the end of their document; 0: prompts are not cut.
    // The engine must outlive the collector.
    BenchPromptCollector(const Engine& engine, int n_predict, int max_prompt_tokens);

    void add_data(const BenchData& data);
    // Short prompts of several tasks, and a document and a source file cut to several lengths up to
    // the context size. At most `limit` (0: all) after the first `skip`.
    void add_builtin(int limit, int skip);
    // The first `depth` tokens of a text, which is repeated if it is shorter.
    void add_synthetic(int depth);

    BenchPrompts take() { return std::move(collected_); }

  private:
    // Returns true if the prompt was added without being cut.
    bool add_text(const std::string& data, const DataPrompt& prompt, int n_max);
    void add_lengths(const DataPrompt& prompt);
    void add(BenchPrompt prompt);
    void skip(const std::string& where, const std::string& why);

    const Engine& engine_;
    int n_room_;
    int n_longest_;  // n_room_, or the length that prompts are cut to
    bool is_cutting_;
    BenchPrompts collected_;
};

inline constexpr const char* kBuiltinData = "built-in";

}  // namespace knap
