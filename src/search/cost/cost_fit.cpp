#include "search/cost/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/quantile.h"
#include "search/cost/linear_fit.h"

namespace knap {

namespace {

// The weight of a part's guess: a part of twice its guess counts as much as an error of 0.2 % in
// the time of a pass. The guess decides where samples say nothing, and hardly matters elsewhere.
constexpr double kGuessWeight = 0.002;
// The least share of its guess that a part may have, which keeps all parts positive.
constexpr double kSmallestShare = 1e-3;
// The guessed share of the fixed cost in the time of the whole model.
constexpr double kFixedShare = 0.02;

// One equation of a fit: the sum of coefficients[i] * unknown[i] equals `ms`.
struct Equation {
    std::vector<double> coefficients;
    double ms;
    double trust;
};

// The weight of a sample, 1 for steady times and less for disturbed ones. A single time has no
// spread, whatever disturbed it.
double trust_in(const CostSample& sample) {
    constexpr double kUsualSpread = 0.02;
    constexpr double kBusySpread = 0.4;
    const double spread = std::isfinite(sample.spread_ms) ? std::abs(sample.spread_ms) : sample.ms;
    const double least = sample.was_busy ? kBusySpread : kUsualSpread;
    return kUsualSpread / std::max(least, spread / sample.ms);
}

double dot(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Fits unknowns by relative errors, each in units of its guess.
std::vector<double> fit_near(std::span<const double> guess, std::span<const Equation> equations) {
    LinearFit fit(guess.size());
    for (const auto& [coefficients, ms, trust] : equations) {
        std::vector<double> row(guess.size());
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = trust * coefficients[i] * guess[i] / ms;
        }
        fit.add(row, trust);
    }
    for (std::size_t i = 0; i < guess.size(); ++i) {
        fit.add_belief(i, 1.0, kGuessWeight);
    }
    std::vector<double> unknowns = fit.solve(kSmallestShare);
    std::ranges::transform(unknowns, guess, unknowns.begin(), std::multiplies<>());
    return unknowns;
}

// --- parts ---
// Unknowns in order: fixed, head, cache row, attention of each class, MLP of each class.

constexpr std::ptrdiff_t kFirstAttention = 3;

std::vector<double> part_counts(const CostProfile& profile, const CostSample& sample) {
    const PassWork work = pass_work(sample.plan, profile.kinds(), sample.n_context, 1);
    std::vector<double> counts{1.0, profile.heads(sample.plan, sample.has_head), work.cache_rows};
    counts.insert(counts.end(), work.attentions.begin(), work.attentions.end());
    counts.insert(counts.end(), work.mlps.begin(), work.mlps.end());
    return counts;
}

CostParts to_parts(std::span<const double> unknowns, int n_classes) {
    const auto attention = unknowns.begin() + kFirstAttention;
    const auto mlp = attention + n_classes;
    return {.fixed_ms = unknowns[0],
            .head_ms = unknowns[1],
            .cache_row_ms = unknowns[2],
            .attention_ms = {attention, mlp},
            .mlp_ms = {mlp, unknowns.end()}};
}

bool are_known(const PartBytes& bytes, int n_classes) {
    const auto can_be = [](double n_bytes) { return n_bytes >= 1 && n_bytes <= 1e15; };
    const auto n = static_cast<std::size_t>(n_classes);
    return bytes.attention.size() == n && bytes.mlp.size() == n && can_be(bytes.head) &&
           can_be(bytes.cache_row) && std::ranges::all_of(bytes.attention, can_be) &&
           std::ranges::all_of(bytes.mlp, can_be);
}

// Without known bytes, all modules and the head count the same, and a module reads as much as an
// attention reads of this many cache rows.
PartBytes equal_shares(int n_classes) {
    constexpr double kCacheRowsOfAModule = 1024;
    const auto n = static_cast<std::size_t>(n_classes);
    return {.attention = std::vector<double>(n, 1.0),
            .mlp = std::vector<double>(n, 1.0),
            .head = 1,
            .cache_row = 1 / kCacheRowsOfAModule};
}

// The bytes of every part; the fixed part reads none.
std::vector<double> part_bytes(const CostProfile& profile) {
    const int n_classes = profile.n_classes();
    const PartBytes bytes =
        are_known(profile.bytes, n_classes) ? profile.bytes : equal_shares(n_classes);
    std::vector<double> parts{0.0, bytes.head, bytes.cache_row};
    parts.insert(parts.end(), bytes.attention.begin(), bytes.attention.end());
    parts.insert(parts.end(), bytes.mlp.begin(), bytes.mlp.end());
    return parts;
}

// Divides the time of the whole model in proportion to bytes.
std::vector<double> guess_parts(const CostProfile& profile) {
    std::vector<double> guess = part_bytes(profile);
    std::vector<double> whole_ms;
    std::vector<double> ms_per_byte;
    for (const CostSample& sample : profile.samples) {
        if (is_plain_step(sample, profile.n_layers())) {
            whole_ms.push_back(sample.ms);
            ms_per_byte.push_back((1 - kFixedShare) * sample.ms /
                                  dot(part_counts(profile, sample), guess));
        }
    }
    const double rate = median(std::move(ms_per_byte));
    std::ranges::transform(guess, guess.begin(), [&](double bytes) { return rate * bytes; });
    guess.front() = kFixedShare * median(std::move(whole_ms));
    return guess;
}

// --- rows ---

// A pass of several rows, with the parts of its time for a single row.
struct RowsSample {
    double weights_ms;
    double cache_ms;
    double ms;  // measured, without the fixed cost
    double trust;

    double one_row_ms() const { return weights_ms + cache_ms; }
};

using SamplesByRows = std::map<int, std::vector<RowsSample>>;

SamplesByRows samples_of_rows(const CostProfile& profile, const CostParts& parts) {
    SamplesByRows by_rows;
    for (const CostSample& sample : profile.samples) {
        if (sample.n_rows == 1 || !is_plausible(sample, profile.n_layers())) {
            continue;
        }
        const PassWork work =
            pass_work(sample.plan, profile.kinds(), sample.n_context, sample.n_rows);
        const RowsSample rows{
            .weights_ms = parts.weights_ms(work, profile.heads(sample.plan, sample.has_head)),
            .cache_ms = parts.cache_ms(work),
            .ms = std::max(sample.ms - parts.fixed_ms, kSmallestShare * sample.ms),
            .trust = trust_in(sample),
        };
        if (rows.one_row_ms() > 0) {
            by_rows[sample.n_rows].push_back(rows);
        }
    }
    return by_rows;
}

RowFactors fit_factors(int n_rows, std::span<const RowsSample> samples) {
    std::vector<double> ratios;
    std::vector<Equation> equations;
    for (const RowsSample& sample : samples) {
        ratios.push_back(sample.ms / sample.one_row_ms());
        equations.push_back({{sample.weights_ms, sample.cache_ms}, sample.ms, sample.trust});
    }
    const std::vector<double> guess(2, median(std::move(ratios)));
    const std::vector<double> factors = fit_near(guess, equations);
    return {.n_rows = n_rows, .weights = factors[0], .cache = factors[1]};
}

// The line through two points; beyond the second it does not fall.
double on_line(const RowFactors& a, const RowFactors& b, double RowFactors::*factor, int n_rows) {
    const double slope = (b.*factor - a.*factor) / (b.n_rows - a.n_rows);
    return b.*factor + (n_rows > b.n_rows ? std::max(slope, 0.0) : slope) * (n_rows - b.n_rows);
}

}  // namespace

double CostParts::weights_ms(const PassWork& work, double heads) const {
    return heads * head_ms +
           std::inner_product(attention_ms.begin(), attention_ms.end(), work.attentions.begin(),
                              0.0) +
           std::inner_product(mlp_ms.begin(), mlp_ms.end(), work.mlps.begin(), 0.0);
}

CostParts fit_parts(const CostProfile& profile) {
    KNAP_ASSERT(can_fit(profile), "a profile has a pass of the whole model");
    std::vector<Equation> equations;
    for (const CostSample& sample : profile.samples) {
        if (sample.n_rows == 1 && is_plausible(sample, profile.n_layers())) {
            equations.push_back({part_counts(profile, sample), sample.ms, trust_in(sample)});
        }
    }
    return to_parts(fit_near(guess_parts(profile), equations), profile.n_classes());
}

std::vector<RowFactors> fit_rows(const CostProfile& profile, const CostParts& parts) {
    std::vector<RowFactors> factors;
    for (const auto& [n_rows, samples] : samples_of_rows(profile, parts)) {
        factors.push_back(fit_factors(n_rows, samples));
    }
    return factors;
}

RowFactors factors_at(std::span<const RowFactors> measured, int n_rows) {
    KNAP_ASSERT(!measured.empty(), "passes of several rows were measured");
    RowFactors below{};  // one row
    if (n_rows <= below.n_rows) {
        return below;
    }
    // The first measured entry with at least as many rows, or the last entry.
    std::size_t i = 0;
    while (i + 1 < measured.size() && measured[i].n_rows < n_rows) {
        below = measured[i++];
    }
    return {.n_rows = n_rows,
            .weights = on_line(below, measured[i], &RowFactors::weights, n_rows),
            .cache = on_line(below, measured[i], &RowFactors::cache, n_rows)};
}

}  // namespace knap
