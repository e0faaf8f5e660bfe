#include "decode/learned/learned.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace knap {

namespace {

constexpr int kFirstBucket = 128;
// The most measurements that the time of a pass remembers.
constexpr int kMostMeasured = 8;
// The same once the time has changed by this share, or by this many spreads: what was measured
// before hardly counts.
constexpr int kMeasuredBeforeDrift = 1;
constexpr double kDrift = 0.25;
constexpr double kDriftSpreads = 3;

bool are_same_pass(const CostSample& a, const CostSample& b) {
    return a.plan == b.plan && a.n_rows == b.n_rows && a.has_head == b.has_head &&
           context_bucket(a.n_context) == context_bucket(b.n_context);
}

bool are_same_plan(const SavedPlan& a, const SavedPlan& b) {
    return a.plan == b.plan && context_bucket(a.n_context) == context_bucket(b.n_context);
}

bool is_empty(const CopyTables& tables) {
    return std::ranges::all_of(tables, [](const CopyAcceptance::Table& table) {
        return std::ranges::all_of(table, [](const DraftCounts& cell) { return cell.all == 0; });
    });
}

void add_tables(CopyTables& tables, const CopyTables& later) {
    for (std::size_t kind = 0; kind < tables.size(); ++kind) {
        for (std::size_t cell = 0; cell < tables[kind].size(); ++cell) {
            tables[kind][cell].add(later[kind][cell]);
            tables[kind][cell].fade(Learned::kMostDrafts);
        }
    }
}

void limit_ways(std::map<Learned::Way, Learned::Seen>& ways) {
    while (ways.size() > Learned::kMostWays) {
        ways.erase(std::ranges::min_element(ways, {}, [](const auto& way) {
            return std::pair(way.second.run, way.second.drafts.all);
        }));
    }
}

template <typename Item>
void limit_items(std::vector<Item>& items, std::size_t most) {
    std::ranges::stable_sort(items, std::ranges::greater{}, &Item::run);
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), most)),
                items.end());
}

}  // namespace

int context_bucket(int n_context) {
    const auto n_doublings = static_cast<unsigned>(std::max(n_context, 0)) / kFirstBucket;
    return std::min(static_cast<int>(std::bit_width(n_doublings)), kContextBuckets - 1);
}

int first_of_bucket(int bucket) {
    return bucket == 0 ? 0 : kFirstBucket << (bucket - 1);
}

CostSample updated(const CostSample& known, const CostSample& later) {
    if (known.was_busy != later.was_busy) {
        return known.was_busy ? later : known;
    }
    const double change = std::abs(later.ms - known.ms);
    const bool has_drifted = change > kDrift * known.ms && change > kDriftSpreads * known.spread_ms;
    const int n_before =
        std::min(known.n_measured, has_drifted ? kMeasuredBeforeDrift : kMostMeasured);
    const int n_later = std::min(later.n_measured, kMostMeasured);
    const double share = static_cast<double>(n_later) / (n_before + n_later);
    const auto mean = [share](double before, double after) {
        return before + share * (after - before);
    };
    CostSample both = known;
    both.n_context = static_cast<int>(std::lround(mean(known.n_context, later.n_context)));
    both.ms = mean(known.ms, later.ms);
    both.spread_ms = mean(known.spread_ms, std::max(later.spread_ms, change / 2));
    both.n_measured = std::min(n_before + n_later, kMostMeasured);
    return both;
}

bool Learned::is_empty() const {
    return ways.empty() && plans.empty() && costs.empty() &&
           std::ranges::all_of(copies,
                               [](const CopyTables& tables) { return knap::is_empty(tables); });
}

double Learned::weight() const {
    double n_drafts = 0;
    for (const auto& [way, seen] : ways) {
        n_drafts += seen.drafts.all;
    }
    double n_positions = 0;
    double n_predicted = 0;  // of those
    for (const CopyTables& tables : copies) {
        for (std::size_t kind = 0; kind < tables.size(); ++kind) {
            const bool is_predicted = kind == static_cast<std::size_t>(CopiedText::predicted);
            (is_predicted ? n_predicted : n_positions) += CopyAcceptance::n_positions(tables[kind]);
        }
    }
    return std::max({n_drafts, n_positions, n_predicted}) +
           static_cast<double>(plans.size() + costs.size());
}

DraftCounts Learned::drafts_of(const Way& way) const {
    const auto found = ways.find(way);
    return found == ways.end() ? DraftCounts() : found->second.drafts;
}

void Learned::add_drafts(Way way, const DraftCounts& drafts) {
    Seen& seen = ways[std::move(way)];
    seen.drafts.add(drafts);
    seen.run = n_runs;
}

void Learned::add_plan(const SavedPlan& plan, double speed) {
    const auto is_same = [&](const Found& found) { return are_same_plan(found.plan, plan); };
    std::erase_if(plans, is_same);
    plans.push_back({.plan = plan, .speed = speed, .run = n_runs});
}

void Learned::add_cost(const CostSample& sample) {
    const auto is_same = [&](const Cost& cost) { return are_same_pass(cost.sample, sample); };
    const auto known = std::ranges::find_if(costs, is_same);
    if (known == costs.end()) {
        costs.push_back({.sample = sample, .run = n_runs});
    } else {
        *known = {.sample = updated(known->sample, sample), .run = n_runs};
    }
}

void Learned::add(const Learned& later) {
    n_runs += later.n_runs;
    for (const auto& [way, seen] : later.ways) {
        add_drafts(way, seen.drafts);
        ways[way].drafts.fade(kMostDrafts);
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
        add_tables(copies[i], later.copies[i]);
    }
    for (const Found& found : later.plans) {
        add_plan(found.plan, found.speed);
    }
    for (const Cost& cost : later.costs) {
        add_cost(cost.sample);
    }
    limit_ways(ways);
    limit_items(plans, kMostPlans);
    limit_items(costs, kMostCosts);
}

}  // namespace knap
