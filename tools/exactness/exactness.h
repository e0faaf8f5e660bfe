// Exactness at scale: random conversations on engines that are set up in random ways, each written
// by plain decoding and by every strategy, until as many tokens have been compared as wanted.
//
// A *case* is one strategy's answers to one conversation. Its number and the seed decide all of it
// (the conversation also depends on what the model writes), so that it can be repeated alone, and a
// run goes on where its record ends. The cases of a conversation follow one another and share an
// engine. Plain decoding is one session of an engine of its own, with one thread and nothing to
// reuse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/check/check.h"
#include "tools/check/contender.h"
#include "tools/exactness/record.h"

namespace knap {

struct ExactnessOptions {
    // The model, its devices, the context, and the most threads. The rest is drawn.
    RuntimeConfig config;
    std::vector<Contender> contenders;
    std::vector<CheckPrompt> texts;  // prompts are made of their tokens; at least one
    int n_predict = 48;              // most tokens of an answer
    std::uint64_t seed = 1;
    std::int64_t n_tokens = 0;  // of this model, seed and machine, those in the record included
    std::optional<int> only{};  // this case, and what is served beside it, whatever the record has
};

// lossless_contenders() and eager_contenders().
std::vector<Contender> exactness_contenders(Engine& engine);

// Throws knap::Error unless a text has the same bits on every such engine: then a difference may be
// a near tie, which check_lossless() can tell.
void check_promises_exactness(Engine& engine);

// Adds cases to the record. Returns false when cancelled: finished cases are in the record.
bool check_exactness(const ExactnessOptions& options,
                     ExactnessRecord& record,
                     const CheckObserver& observer);

}  // namespace knap
