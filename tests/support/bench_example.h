// A handmade benchmark report, for tests of its readers, and prompts to measure.
#pragma once

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"

namespace knap::test {

// The row of a strategy on the prompt "p1" of "data.jsonl". Every field has a different value.
BenchRow example_row(const std::string& strategy = "lookup");

// What a strategy achieved with several sessions at once, in two turns.
BenchLoad example_load(const std::string& strategy = "lookup");

// Two prompts, each with a row for plain decoding and one for lookup. Nothing is skipped.
BenchReport example_report();

// A prompt to measure, synthetic, so its answers never end early.
BenchPrompt synthetic_prompt(const Engine& engine, const std::string& text);

}  // namespace knap::test
