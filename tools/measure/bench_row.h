// Builds the rows of a benchmark from the results of sessions and of libllama.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/contenders.h"
#include "tools/measure/report/bench_report.h"
#include "tools/peer/llama_answer.h"

namespace knap {

// The turn of `result`. Plain decoding took `plain_ms` for `n_plain` tokens; its time is scaled to
// the number of tokens in this answer, which differs when the text does or ends earlier.
BenchTurn make_turn(const Result& result, double plain_ms, int n_plain);

// Decoding steps of an answer: its first token comes from the prefill.
int n_steps(int n_generated);

// Requires at least one turn.
double tokens_per_second_of(std::span<const BenchTurn> turns);

// The fields that all rows of a prompt have in common.
BenchRow blank_row(const BenchPrompt& prompt, const std::string& acceptance, double prefill_ms);

// Fills in the results of a contender: `results` has one per turn, in order.
void fill_row(BenchRow& row,
              const Contender& contender,
              std::span<const Result> results,
              std::vector<BenchTurn> turns);

// Fills in the results of a peer with `setting`: its answers and our plain decoding's time for as
// many tokens, by turn. Our answer is `reference`.
void fill_peer_row(BenchRow& row,
                   const std::string& name,
                   const std::string& setting,
                   const Result& reference,
                   std::span<const LlamaAnswer> answers,
                   std::span<const double> plain_ms);

}  // namespace knap
