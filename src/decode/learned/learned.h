// What runs learn about drafting with a model on a machine, and hand on to later runs
// (docs/methods.md, "Memory"): counts, plans and times. It has no text and no tokens. Its size is
// bounded, and old evidence fades. Arithmetic only.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/copies/copy_acceptance.h"
#include "decode/learned/draft_counts.h"
#include "search/cost/cost_profile.h"
#include "search/saved_plans.h"

namespace knap {

// Contexts of about one length: 0 to 127 tokens, 128 to 255, 256 to 511 and so on.
int context_bucket(int n_context);
int first_of_bucket(int bucket);
inline constexpr int kContextBuckets = 20;

// The tables of copies, in the order of CopiedText.
using CopyTables = std::array<CopyAcceptance::Table, kCopiedTexts>;

struct Learned {
    // A way of drafting, by what is known to change its acceptance.
    struct Way {
        std::string name;  // the plan that drafted, "copies", or "lookup"
        int bucket = 0;    // context_bucket()
        bool is_sampled = false;

        auto operator<=>(const Way&) const = default;
    };
    struct Seen {
        DraftCounts drafts;
        int run = 0;  // the latest one that drafted so
    };
    // A plan that a search has found.
    struct Found {
        SavedPlan plan;
        double speed = 1;  // predicted, over plain decoding
        int run = 0;
    };
    struct Cost {
        CostSample sample;
        int run = 0;
    };

    static constexpr std::size_t kMostWays = 96;
    static constexpr std::size_t kMostPlans = 16;
    static constexpr std::size_t kMostCosts = 64;
    static constexpr std::size_t kLongestName = 4096;
    // The most drafts that a count remembers.
    static constexpr double kMostDrafts = 512;

    int n_runs = 0;
    std::map<Way, Seen> ways{};
    std::array<CopyTables, 2> copies{};  // while decoding greedily, and while sampling
    std::vector<Found> plans{};          // of one plan and bucket, one
    std::vector<Cost> costs{};           // of one pass and bucket, one

    bool is_empty() const;
    // How much a request has noted: measured times, found plans, and drafts that were judged, or
    // tokens whose copies were, if those are more. About one for each token, whatever was tried.
    double weight() const;
    DraftCounts drafts_of(const Way& way) const;

    // In notes every draft counts; they fade when they are added to what is known.
    void add_drafts(Way way, const DraftCounts& drafts);
    // Replaces an earlier finding of the same plan at such contexts.
    void add_plan(const SavedPlan& plan, double speed);
    // A measured pass. A quiet measurement is not mixed with one of a busy machine, and stays.
    void add_cost(const CostSample& sample);
    // Adds what was learned after this. What was used longest ago is dropped where there would be
    // too much.
    void add(const Learned& later);
};

// What is known of a pass after it was measured again.
CostSample updated(const CostSample& known, const CostSample& later);

}  // namespace knap
