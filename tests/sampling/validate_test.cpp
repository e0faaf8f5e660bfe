#include "sampling/validate.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::validate_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int kVocab = 100;

struct Case {
    const char* flag;  // expected in the message; null: the options are valid
    std::function<void(SamplingOptions&)> change;
};

template <typename Member, typename Value>
Case set(const char* flag, Member member, Value value) {
    return {flag, [=](SamplingOptions& options) { options.*member = value; }};
}

Case bias(const char* flag, Token token, float amount) {
    return {flag, [=](SamplingOptions& options) {
                options.logit_bias = {{0, 1.0f}, {token, amount}};
            }};
}

std::vector<Case> cases() {
    using Options = SamplingOptions;
    std::vector<Case> all = {
        {nullptr, [](Options&) {}},
        set(nullptr, &Options::temperature, 0.0f),
        set("`.temperature`", &Options::temperature, -0.1f),
        set(nullptr, &Options::top_k, 0),
        set("`.top_k`", &Options::top_k, -1),
        set(nullptr, &Options::top_p, 1.0f),
        set("`.top_p`", &Options::top_p, 0.0f),
        set("`.top_p`", &Options::top_p, 1.01f),
        set(nullptr, &Options::min_p, 0.0f),
        set(nullptr, &Options::min_p, 1.0f),
        set("`.min_p`", &Options::min_p, -0.01f),
        set("`.min_p`", &Options::min_p, 1.01f),
        set("`.repeat_penalty`", &Options::repeat_penalty, 0.0f),
        set("`.repeat_penalty`", &Options::repeat_penalty, -1.0f),
        set(nullptr, &Options::presence_penalty, -2.0f),
        set(nullptr, &Options::frequency_penalty, -2.0f),
        set(nullptr, &Options::repeat_last_n, -1),
        set("`.repeat_last_n`", &Options::repeat_last_n, -2),
        bias(nullptr, 99, -kInfinity),
        bias("`.logit_bias`", 100, 1.0f),
        bias("`.logit_bias`", -1, 1.0f),
        bias("`.logit_bias`", 5, kInfinity),
        bias("`.logit_bias`", 5, kNaN),
    };
    for (float bad : {kNaN, kInfinity}) {
        all.push_back(set("`.temperature`", &Options::temperature, bad));
        all.push_back(set("`.top_p`", &Options::top_p, bad));
        all.push_back(set("`.min_p`", &Options::min_p, bad));
        all.push_back(set("`.repeat_penalty`", &Options::repeat_penalty, bad));
        all.push_back(set("`.presence_penalty`", &Options::presence_penalty, bad));
        all.push_back(set("`.frequency_penalty`", &Options::frequency_penalty, bad));
    }
    return all;
}

TEST(ValidateSampling, NamesTheFieldOfABadValue) {
    for (const Case& test : cases()) {
        SamplingOptions options;
        test.change(options);
        std::string message;
        try {
            validate(options, kVocab);
        } catch (const Error& error) {
            message = error.what();
        }
        if (test.flag == nullptr) {
            EXPECT_EQ(message, "");
        } else {
            EXPECT_THAT(message, ::testing::StartsWith(std::string(test.flag) + ":"));
        }
    }
}

}  // namespace
}  // namespace knap::validate_test
