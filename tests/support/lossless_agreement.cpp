#include "support/lossless_agreement.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/rounding_error.h"
#include "tools/check/lossless_check.h"
#include "tools/check/verification_error.h"

namespace knap::test {
namespace {

// Verifications and single-row passes each round the factors of their products, at different
// places, so they can differ by twice the reference error. The other factor of 2 is for maxima over
// different rows.
constexpr double kFactorsFactor = 4;

std::vector<CheckPrompt> random_prompts() {
    std::vector<CheckPrompt> prompts;
    for (const unsigned seed : {1U, 2U, 3U}) {
        prompts.push_back({.id = std::to_string(seed),
                           .tokens = random_tokens(20 + 90 * static_cast<int>(seed), 256, seed)});
    }
    return prompts;
}

// The larger of the rounding errors with the CPU's factors and with those of tensor cores.
double largest_rounding(const std::filesystem::path& path) {
    LoadedModel model(path);
    const auto tokens = random_tokens(256, model.config.n_vocab, 4);
    return std::max(rounding_error(model, tokens, Factors::as_stored).max_abs,
                    rounding_error(model, tokens, Factors::f16).max_abs);
}

}  // namespace

void expect_lossless(const RuntimeConfig& config, const LosslessExpectation& expected) {
    Engine engine(config);
    const std::vector<CheckPrompt> prompts = random_prompts();
    const auto error = measure_verifications(engine, prompts, {});
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->chains == 0, expected.has_exact_chains) << error->chains;
    EXPECT_LE(error->largest(), kFactorsFactor * largest_rounding(config.model_path));

    const auto reports = check_lossless(engine, prompts,
                                        {.contenders = lossless_contenders(engine),
                                         .n_predict = expected.n_predict,
                                         .near_tie_gap = near_tie_bound(*error)},
                                        {});
    ASSERT_TRUE(reports.has_value());
    int n_drafted = 0;
    int n_accepted = 0;
    for (const LosslessReport& report : *reports) {
        for (const Divergence& found : report.mismatches) {
            ADD_FAILURE() << report.contender.name << ", prompt " << found.prompt << ", position "
                          << found.position << ": plain decoding's gap is " << *found.gap
                          << ", the bound of near ties " << near_tie_bound(*error);
        }
        const SpeculationOptions& options = report.contender.speculation;
        const bool has_trees = options.settings.contains("width") || options.strategy == "swift";
        EXPECT_TRUE(!expected.has_exact_chains || has_trees || report.near_ties.empty())
            << report.contender.name;
        n_drafted += report.n_drafted;
        n_accepted += report.n_accepted;
    }
    EXPECT_GT(n_accepted, 0) << "a test in which nothing is accepted proves little";
    EXPECT_LT(n_accepted, n_drafted);
}

}  // namespace knap::test
