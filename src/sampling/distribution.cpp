#include "sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/row_maximum.h"

namespace knap {

SamplingTransform::SamplingTransform(const SamplingOptions& options)
    : temperature_(options.temperature),
      top_k_(static_cast<std::size_t>(options.top_k)),
      top_p_(options.top_p),
      min_p_(options.min_p) {
    KNAP_ASSERT(temperature_ > 0.0f, "at temperature 0 the choice is greedy");
}

void SamplingTransform::apply(std::span<const float> logits, Distribution& out) {
    const float maximum = find_maximum(logits).logit;
    if (top_k_ > 0 && top_k_ < logits.size()) {
        ranking_.take_largest(logits, top_k_);
        ranking_.sort();
    } else {
        ranking_.take_all(logits);
    }
    cut(maximum, out);
}

void SamplingTransform::apply(std::span<const RankKey> best, Distribution& out) {
    KNAP_ASSERT(top_k_ > 0 && !best.empty(), "without top-k every token counts");
    ranking_.take_largest(best, top_k_);
    ranking_.sort();
    cut(logit_of(ranking_.keys().front()), out);
}

// Of the ranking: in order with top-k, so that sums do not depend on how it was found.
void SamplingTransform::cut(float maximum, Distribution& out) {
    // Top-p and min-p both keep a prefix of the ranking, so min-p may go first and leave less to
    // sort. Top-p measures the mass of everything that top-k left.
    const double total = drop_improbable(maximum);
    ranking_.sort();

    const double mass_limit =
        top_p_ < 1.0f ? top_p_ * total : std::numeric_limits<double>::infinity();
    double mass = 0.0;
    out.tokens.clear();
    out.probabilities.clear();
    for (RankKey key : ranking_.keys()) {
        if (mass >= mass_limit) {
            break;
        }
        out.tokens.push_back(token_of(key));
        out.probabilities.push_back(weight(logit_of(key), maximum));
        mass += out.probabilities.back();
    }
    for (float& probability : out.probabilities) {
        probability = static_cast<float>(probability / mass);
    }
}

// Applies min-p and drops tokens whose softmax rounds to 0. Returns the total weight, including
// that of dropped tokens.
double SamplingTransform::drop_improbable(float maximum) {
    double total = 0.0;
    std::vector<RankKey>& keys = ranking_.keys();
    std::size_t n_kept = 0;
    for (RankKey key : keys) {
        const float token_weight = weight(logit_of(key), maximum);
        total += token_weight;
        if (token_weight > 0.0f && token_weight >= min_p_) {
            keys[n_kept++] = key;
        }
    }
    keys.resize(n_kept);
    return total;
}

// Proportional to the token's probability; 1 for the most probable.
float SamplingTransform::weight(float logit, float maximum) const {
    return std::exp((logit - maximum) / temperature_);
}

namespace {

// Calls keep(i, ratio) for the entries whose log p + gumbel is above `bar`, which keep() may raise.
// log p + gumbel is the logarithm of p / e, where e = -log(uniform) is an exponential variate, so
// comparing ratios gives the same choice. Since e >= 1 - uniform, most tokens are ruled out without
// a logarithm.
template <typename Probability, typename Keep>
void for_each_above(std::span<const Token> tokens,
                    std::span<const Probability> probabilities,
                    const PositionNoise& noise,
                    const double& bar,
                    const Keep& keep) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const double probability = probabilities[i];
        const double uniform = noise.uniform(tokens[i]);
        if (probability <= bar * (1.0 - uniform)) {
            continue;
        }
        const double ratio = probability / -std::log(uniform);
        if (ratio > bar) {
            keep(i, ratio);
        }
    }
}

template <typename Probability>
Token draw_one(std::span<const Token> tokens,
               std::span<const Probability> probabilities,
               const PositionNoise& noise) {
    KNAP_ASSERT(!tokens.empty(), "a distribution has at least one token");
    Token chosen = tokens.front();
    double best = 0.0;
    for_each_above(tokens, probabilities, noise, best, [&](std::size_t i, double ratio) {
        best = ratio;
        chosen = tokens[i];
    });
    return chosen;
}

}  // namespace

Token draw(const Distribution& distribution, const PositionNoise& noise) {
    return draw_one(std::span(distribution.tokens), std::span(distribution.probabilities), noise);
}

Token draw(std::span<const Token> tokens,
           std::span<const double> weights,
           const PositionNoise& noise) {
    return draw_one(tokens, weights, noise);
}

void draw_several(const Distribution& distribution,
                  const PositionNoise& noise,
                  std::size_t n,
                  std::vector<Draw>& out) {
    KNAP_ASSERT(n > 0, "at least one token is drawn");
    out.clear();
    const std::span<const Token> tokens = distribution.tokens;
    double bar = 0.0;  // the ratio of the last of n draws; 0 while there are fewer
    for_each_above(tokens, std::span(distribution.probabilities), noise, bar,
                   [&](std::size_t i, double ratio) {
                       if (out.size() == n) {
                           out.pop_back();
                       }
                       const auto place =
                           std::find_if(out.begin(), out.end(),
                                        [&](const Draw& draw) { return draw.ratio < ratio; });
                       out.insert(place, {tokens[i], ratio});
                       bar = out.size() == n ? out.back().ratio : 0.0;
                   });
}

}  // namespace knap
