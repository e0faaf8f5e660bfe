// Does every strategy write the text of plain decoding? Token for token where a row's bits do not
// depend on the rows beside it (and, for trees, where our own attention runs); elsewhere the texts
// may part where the whole model hardly preferred its choice to the second one: a near-tie.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/check/check.h"
#include "tools/check/contender.h"

namespace knap {

// Every strategy of strategies() but plain decoding and those that need what the engine has not;
// `static` with a few plans that fit the model.
std::vector<Contender> lossless_contenders(Engine& engine);
std::vector<Contender> lossless_contenders(int n_layers, bool has_reduced_head, bool has_adapter);

struct LosslessOptions {
    std::vector<Contender> contenders;
    // Sampled from all of the vocabulary: at the edge of a cut (top-k, top-p, min-p) rounding
    // decides whether a token takes part at all, and that is no tie between choices.
    std::vector<SamplingOptions> samplings{
        {}, {.temperature = 0.8f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 1}};
    int n_predict = 48;  // tokens after each prompt, at most; prompt and they must fit the context
};

// Where a strategy's text first differs from that of plain decoding.
struct Divergence {
    std::string prompt;             // its id
    int position = 0;               // from the start of the conversation
    std::optional<Token> expected;  // plain decoding's token; none: its text ends there
    std::optional<Token> found;
    std::optional<float> gap;  // set: a near-tie
};

// The results of one contender with one kind of sampling, over all prompts.
struct LosslessReport {
    Contender contender;
    SamplingOptions sampling;
    int n_prompts = 0;
    int n_equal = 0;  // texts that are the same to the end
    int n_tokens = 0;
    int n_drafted = 0;
    int n_accepted = 0;
    std::vector<Divergence> near_ties;
    std::vector<Divergence> mismatches;
};

// A report for every contender with every sampling. Returns nullopt when cancelled.
std::optional<std::vector<LosslessReport>> check_lossless(Engine& engine,
                                                          std::span<const CheckPrompt> prompts,
                                                          const LosslessOptions& options,
                                                          const CheckObserver& observer);

// Compares a strategy's answer with plain decoding's to the same prompt. Nullopt: they are equal.
std::optional<Divergence> find_divergence(const Result& plain, const Result& drafted);

}  // namespace knap
