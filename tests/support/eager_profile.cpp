#include "support/eager_profile.h"

#include <utility>

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace knap::test {
namespace {

void add_to(SourceStatistics& sum, const SourceStatistics& more) {
    sum.rounds += more.rounds;
    sum.n_drafted += more.n_drafted;
    sum.n_accepted += more.n_accepted;
}

void expect_both_outcomes(const char* source, const SourceStatistics& sum) {
    EXPECT_GT(sum.rounds, 0) << source;
    EXPECT_GT(sum.n_accepted, 0) << source << ", " << sum.n_drafted << " tokens drafted";
    EXPECT_LT(sum.n_accepted, sum.n_drafted) << source;
}

}  // namespace

RuntimeConfig with_eager_profile(RuntimeConfig config, Slow slow) {
    return knap::with_eager_profile(std::move(config), slow, temporary_folder());
}

void SourceCounts::add(const SpeculationStatistics& statistics) {
    add_to(copies_, statistics.copies);
    add_to(plans_, statistics.plans);
    add_to(cascades_, statistics.cascades);
}

void SourceCounts::expect_both_outcomes_of_each() const {
    expect_both_outcomes("copies", copies_);
    expect_both_outcomes("plans", plans_);
    expect_both_outcomes("cascades", cascades_);
}

}  // namespace knap::test
