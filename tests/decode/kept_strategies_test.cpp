#include "decode/kept_strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::kept_strategies_test {
namespace {

using testing::ElementsAre;

class NoStrategy final : public Strategy {
  public:
    Proposal propose(const RoundState& /*state*/) override { return {}; }
};

class Kept : public ::testing::Test {
  protected:
    Strategy& get(int draft_max) {
        return kept_.get({.draft_max = draft_max}, [this](const SpeculationOptions& options) {
            made_.push_back(options.draft_max);
            return std::make_unique<NoStrategy>();
        });
    }

    KeptStrategies kept_;
    std::vector<int> made_;  // draft_max of each strategy that had to be made
};

TEST_F(Kept, EqualOptionsShareOneStrategyEvenAfterOthers) {
    const Strategy* first = &get(1);
    const Strategy* second = &get(2);
    EXPECT_EQ(&get(1), first);
    EXPECT_EQ(&get(2), second);
    EXPECT_NE(first, second);
    EXPECT_THAT(made_, ElementsAre(1, 2));
}

TEST_F(Kept, LeastRecentlyUsedStrategyIsDropped) {
    static_assert(KeptStrategies::kMost == 4);
    for (const int draft_max : {1, 2, 3, 4, 1, 5}) {
        get(draft_max);
    }
    made_.clear();
    for (const int draft_max : {1, 3, 4, 5}) {
        get(draft_max);
    }
    EXPECT_THAT(made_, ElementsAre());
    get(2);
    EXPECT_THAT(made_, ElementsAre(2));
}

TEST_F(Kept, StrategiesAreMadeAgainAfterClear) {
    get(1);
    kept_.clear();
    get(1);
    EXPECT_THAT(made_, ElementsAre(1, 1));
}

TEST_F(Kept, StrategiesStayWhenAnotherCannotBeMade) {
    const Strategy* first = &get(1);
    const auto fails = [](const SpeculationOptions&) -> std::unique_ptr<Strategy> {
        fail("no such strategy");
    };
    EXPECT_THROW(kept_.get({.draft_max = 2}, fails), Error);
    EXPECT_EQ(&get(1), first);
    get(2);
    EXPECT_THAT(made_, ElementsAre(1, 2));
}

}  // namespace
}  // namespace knap::kept_strategies_test
