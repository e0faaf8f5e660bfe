// Rows of a benchmark, made of what sessions and libllama gave.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/contenders.h"
#include "tools/measure/report/bench_report.h"

namespace knap {

// A turn of `result`. Plain decoding took `plain_ms` for `n_plain` tokens: where the answer has
// another number of them (another text, or an end that came earlier), its time is scaled to that.
BenchTurn make_turn(const Result& result, double plain_ms, int n_plain);

// Steps of a text: its first token follows from the prompt's own pass.
int n_steps(int n_generated);

// Of one turn or more.
double tokens_per_second_of(std::span<const BenchTurn> turns);

// What a prompt's rows have in common.
BenchRow blank_row(const BenchPrompt& prompt, const std::string& acceptance, double prefill_ms);

// Fills in the results of a contender: `results` are those of its turns, in their order.
void fill_row(BenchRow& row,
              const Contender& contender,
              std::span<const Result> results,
              std::vector<BenchTurn> turns);

}  // namespace knap
