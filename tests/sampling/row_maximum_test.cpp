#include "sampling/row_maximum.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::row_maximum_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::string error_of(const std::vector<float>& logits) {
    try {
        find_maximum(logits);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(RowMaximum, IsFoundAtEveryIndexOfEveryLength) {
    for (std::size_t length : {1, 2, 15, 16, 17, 31, 1023, 1024, 1025, 2100}) {
        for (std::size_t at = 0; at < length; ++at) {
            std::vector<float> logits(length, -2.0f);
            logits[at] = -1.0f;
            const RowMaximum found = find_maximum(logits);
            ASSERT_EQ(found.token, static_cast<Token>(at)) << length;
            ASSERT_EQ(found.logit, -1.0f);
        }
    }
}

TEST(RowMaximum, TheLowestIdWinsATie) {
    std::vector<float> logits(5000, 0.0f);
    EXPECT_EQ(find_maximum(logits).token, 0);
    for (std::size_t first : {3, 1023, 1024, 4998}) {
        std::vector<float> row(5000, -kInfinity);
        row[first] = row[4999] = 7.0f;
        EXPECT_EQ(find_maximum(row).token, static_cast<Token>(first));
    }
}

TEST(RowMaximum, AgreesWithTheStandardLibraryOnRandomRows) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<float> logits(1 + random() % 4000);
        for (float& logit : logits) {
            logit = static_cast<float>(random() % 50) - 25.0f;
        }
        const auto expected = std::max_element(logits.begin(), logits.end()) - logits.begin();
        ASSERT_EQ(find_maximum(logits).token, expected);
    }
}

TEST(RowMaximum, NaNIsAnErrorWhereverItIs) {
    for (std::size_t at : {0, 5, 16, 1024, 2098, 2099}) {
        std::vector<float> logits(2100, 1.0f);
        logits[at] = kNaN;
        EXPECT_THAT(error_of(logits),
                    testing::HasSubstr("NaN as the logit of token " + std::to_string(at)));
    }
}

TEST(RowMaximum, PositiveInfinityIsAnError) {
    EXPECT_THAT(error_of({1.0f, kInfinity}),
                testing::HasSubstr("+infinity as the logit of token 1"));
}

TEST(RowMaximum, ForbiddenTokensAreSkippedUntilNoneIsLeft) {
    EXPECT_EQ(find_maximum(std::vector<float>{-kInfinity, -1e30f, -kInfinity}).token, 1);
    EXPECT_THAT(error_of(std::vector<float>(3000, -kInfinity)), testing::HasSubstr("forbidden"));
}

}  // namespace
}  // namespace knap::row_maximum_test
