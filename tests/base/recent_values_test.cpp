#include "base/recent_values.h"

#include <string>

#include <gtest/gtest.h>

namespace knap::recent_values_test {
namespace {

class RecentValuesTest : public testing::Test {
  protected:
    std::string get(const std::string& key) {
        return values_.get_or_make(key, [&](const std::string& made) {
            ++n_made_;
            return made + made;
        });
    }

    RecentValues<std::string, std::string> values_{2};
    int n_made_ = 0;
};

TEST_F(RecentValuesTest, AreMadeOnce) {
    EXPECT_EQ(get("a"), "aa");
    EXPECT_EQ(get("a"), "aa");
    EXPECT_EQ(n_made_, 1);
}

TEST_F(RecentValuesTest, ForgetTheOneNotUsedForLongest) {
    get("a");
    get("b");
    get("a");
    get("c");  // replaces b
    EXPECT_EQ(n_made_, 3);
    get("a");
    EXPECT_EQ(n_made_, 3);
    EXPECT_EQ(get("b"), "bb");
    EXPECT_EQ(n_made_, 4);
}

TEST_F(RecentValuesTest, FailuresAreNotKept) {
    const auto fail_to_make = [](const std::string&) -> std::string { throw 1; };
    EXPECT_THROW(values_.get_or_make("a", fail_to_make), int);
    EXPECT_EQ(get("a"), "aa");
}

}  // namespace
}  // namespace knap::recent_values_test
