// The rows and means of a benchmark as table cells, for display.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"
#include "tools/measure/report/bench_summary.h"

namespace knap {

struct BenchTable {
    std::vector<std::string> headings;
    std::vector<std::vector<std::string>> lines;  // each as long as the headings
};

// Explains the columns `speedup` and `request` below a table.
inline constexpr const char* kSpeedupNote =
    "speedup: decoding only; request: the whole request, prefill and decoding";

// Explains the table of loads, which follows it.
inline constexpr const char* kLoadNote =
    "throughput: tokens of all answers / time, over plain decoding with as many sessions; first: "
    "time to the first token; gap: between tokens";

// Explains the table of peers' texts, which follows it.
inline constexpr const char* kPeerTextNote =
    "prompts on which a peer wrote the same text; libllama rounds differently with another number "
    "of rows, so its drafts can change its text at a near tie";

BenchTable row_table(std::span<const BenchRow> rows);
BenchTable summary_table(std::span<const BenchSummary> summaries);
// How many texts of each peer are libllama's plain text, and ours; no lines where none were
// compared.
BenchTable peer_text_table(std::span<const BenchRow> rows);
BenchTable load_table(std::span<const BenchLoad> loads);

}  // namespace knap
