// What a Session is made of. Shared by the files of this room and by benchmarks, which measure the
// parts; nothing else includes this.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "decode/kangaroo/adapter_head.h"
#include "decode/kept_strategies.h"
#include "decode/strategy.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"
#include "model/head_subset.h"
#include "runtime/engine_impl.h"

namespace knap {

struct Session::Impl {
    explicit Impl(Engine::Impl& owner);

    void check_prompt(std::span<const Token> prompt) const;
    int keep_common_beginning(std::span<const Token> prompt);
    // A strategy of this session that it does not keep, with nothing learned yet. It must not
    // outlive the session. Throws where an option is not valid.
    std::unique_ptr<Strategy> new_strategy(const SpeculationOptions& options);
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options,
                    const Observer& observer);
    // With a strategy of the caller's, which new_strategy() made for `options.speculation`.
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options,
                    const Observer& observer,
                    Strategy& strategy);

    void reset();

    // Most rows of a verification. Where rows are only invariant up to some number, a draft that
    // keeps to it keeps the text exact.
    int max_verify_rows() const;

    Engine::Impl& engine;
    KvCache cache;
    // None: the rows of the model's head cannot be read one by one.
    std::optional<HeadSubset> draft_head;
    Forward forward;
    std::optional<AdapterHead> adapter;  // none: the engine has none
    ModulePlan whole_model;
    CostProfile profile;           // with samples where earlier runs measured
    std::vector<SavedPlan> plans;  // found in earlier runs
    int invariant_rows;            // a pass of at most so many rows gives the bits of passes of one
    bool trees_are_exact;          // so does a pass over a tree
    std::vector<Token> history;    // rows [0, cache.committed()) are those of its first tokens
    std::size_t n_prompt = 0;      // of the latest request: what a prompt cache saves
    KeptStrategies strategies;
};

}  // namespace knap
