// Does every strategy write the text of plain decoding? Token for token where a session's passes
// are batch-invariant (and, for trees, where our own attention runs). Elsewhere a text may diverge
// where plain decoding's two best choices are so close that rounding can decide between them: a
// near tie. How close that is follows from measured rounding (verification_error.h).
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
// The same for what an engine has.
struct EngineParts {
    int n_layers = 1;
    bool has_reduced_head = false;
    bool has_adapter = false;
    int n_experts_used = 0;  // by a token; 0: no layer has experts
};
EngineParts parts_of(Engine& engine);
std::vector<Contender> lossless_contenders(const EngineParts& parts);

struct LosslessOptions {
    std::vector<Contender> contenders;
    // Sampled from all of the vocabulary: at the edge of a cut (top-k, top-p, min-p) rounding
    // decides whether a token takes part at all, and that is no tie between choices.
    std::vector<SamplingOptions> samplings{
        {}, {.temperature = 0.8f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 1}};
    int n_predict = 48;  // tokens after each prompt, at most; prompt and they must fit the context
    // A divergence is a near tie where plain decoding's gap is below this, if passes of that answer
    // were not batch-invariant (near_tie_bound()). 0: every divergence is a mismatch.
    double near_tie_gap = 0;
};

// Where a strategy's text first differs from that of plain decoding.
struct Divergence {
    std::string prompt;             // its id
    int position = 0;               // from the start of the conversation
    std::optional<Token> expected;  // plain decoding's token; none: its text ends there
    std::optional<Token> found;
    // How far plain decoding's two best choices are apart there, in logits.
    std::optional<float> gap{};
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

// Compares a strategy's answer with plain decoding's to the same prompt; nullopt when they are
// equal. The gap is left open.
std::optional<Divergence> find_divergence(const Result& plain, const Result& drafted);

}  // namespace knap
