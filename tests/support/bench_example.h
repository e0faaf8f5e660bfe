// A benchmark made up by hand, for tests of what is made of one.
#pragma once

#include "tools/measure/report/bench_report.h"

namespace knap::test {

// Of a strategy on the prompt "p1" of "data.jsonl"; every field has a value of its own.
BenchRow example_row(const std::string& strategy = "lookup");

// Two prompts with a row each of plain decoding and lookup; nothing is skipped.
BenchReport example_report();

}  // namespace knap::test
