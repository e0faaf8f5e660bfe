// The implementation of Session. Shared by the files of this folder and by benchmarks, which use
// the parts; nothing else includes this.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "knap/knap.h"

#include "decode/kangaroo/adapter_head.h"
#include "decode/kept_strategies.h"
#include "decode/strategy.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/head_subset.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"

namespace knap {

struct Session::Impl {
    explicit Impl(Engine::Impl& owner);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void check_prompt(std::span<const Token> prompt) const;
    void check_request(std::span<const Token> prompt, const GenerateOptions& options) const;
    void check_tokens(std::string_view what, std::span<const Token> tokens) const;
    int keep_common_beginning(std::span<const Token> prompt);
    // A new strategy for this session, which the session does not keep and which has learned
    // nothing yet. It must not outlive the session. Throws if an option is not valid.
    std::unique_ptr<Strategy> new_strategy(const SpeculationOptions& options);
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options,
                    const Observer& observer);
    // With the caller's strategy, made by new_strategy() for `options.speculation`.
    Result generate(std::span<const Token> prompt,
                    const GenerateOptions& options,
                    const Observer& observer,
                    Strategy& strategy);

    bool use_idle_time(const std::function<bool()>& is_cancelled);

    bool has_memory() const { return engine.learned != nullptr; }
    // What a strategy begins with.
    const EarlierRuns& runs_for(const SpeculationOptions& options);
    // Hands on what was learned since the last call. Does not throw.
    void keep_notes();
    // Lists the committed rows in the prefix cache.
    void publish_history();
    void reset();

    // The most rows of a verification. Where passes are batch-invariant only up to some number of
    // rows, drafts that keep to it keep the text exact.
    int max_verify_rows() const;

    Engine::Impl& engine;
    Sequence cache;
    PageSupply::Holder pages;  // of the cache
    bool shares_prefixes;      // with other sessions: rows are the same however they are computed
    // Nullopt if the rows of the model's head cannot be read one by one.
    std::optional<HeadSubset> draft_head;
    Forward forward;
    std::optional<AdapterHead> adapter;  // nullopt if the engine has none
    ModulePlan whole_model;
    EarlierRuns known;  // from earlier runs
    // The same for strategies without memory; made on first use.
    std::optional<EarlierRuns> known_without_memory;
    Learned notes;               // for later runs; emptied when a request ends
    int invariant_rows;          // the largest batch that is bit-identical to single-row passes
    bool trees_are_exact;        // so is a pass over a tree
    std::vector<Token> history;  // its first committed() tokens are in the cache rows
    std::size_t n_prompt = 0;    // of the latest request; a prompt cache saves these
    KeptStrategies strategies;
};

}  // namespace knap
