#include "tools/measure/load/session_load.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::session_load_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class SessionLoad : public ::testing::Test {
  protected:
    SessionLoad()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"),
                   .n_ctx = 256,
                   .n_parallel = 3,
                   .n_threads = 1}) {
        for (unsigned i = 0; i < 6; ++i) {
            prompts_.push_back(random_tokens(10 + 5 * static_cast<int>(i), 256, i));
        }
    }

    std::vector<LoadRequest> requests() const {
        std::vector<LoadRequest> list;
        for (std::size_t i = 0; i < prompts_.size(); ++i) {
            list.push_back({prompts_[i],
                            {.n_predict = 4 + static_cast<int>(i),
                             .speculation = plain_decoding(),
                             .ignore_eos = true}});
        }
        return list;
    }

    Engine engine_;
    std::vector<std::vector<Token>> prompts_;
};

void expect_answers(const std::vector<ServedRequest>& served) {
    ASSERT_EQ(served.size(), 6u);
    for (std::size_t i = 0; i < served.size(); ++i) {
        EXPECT_EQ(served[i].result.n_generated, 4 + static_cast<int>(i));
        const TokenTimes& times = served[i].times;
        ASSERT_EQ(times.token_ms.size(), 4 + i);
        EXPECT_TRUE(std::ranges::is_sorted(times.token_ms));
        EXPECT_GE(times.first_ms(), 0);
    }
}

TEST_F(SessionLoad, OneSessionAnswersAllInOrder) {
    std::vector<Session> sessions = open_sessions(engine_, 1);
    const auto served = serve(sessions, requests());
    expect_answers(served);
    for (std::size_t i = 1; i < served.size(); ++i) {
        EXPECT_GE(served[i].times.start_ms, served[i - 1].times.token_ms.back());
    }
}

TEST_F(SessionLoad, SeveralSessionsWriteTheTextsOfOne) {
    std::vector<Session> alone = open_sessions(engine_, 1);
    const auto expected = serve(alone, requests());
    std::vector<Session> sessions = open_sessions(engine_, 3);
    const auto served = serve(sessions, requests());
    expect_answers(served);
    for (std::size_t i = 0; i < served.size(); ++i) {
        EXPECT_EQ(served[i].result.tokens, expected[i].result.tokens) << i;
    }
}

TEST_F(SessionLoad, TellsWhenARequestIsDone) {
    std::vector<Session> sessions = open_sessions(engine_, 1);
    std::vector<std::size_t> n_tokens(6);
    std::vector<std::size_t> done;
    serve(sessions, requests(),
          {.on_token = [&](std::size_t i) { ++n_tokens[i]; },
           .on_done = [&](std::size_t i) { done.push_back(i); }});
    EXPECT_THAT(n_tokens, testing::ElementsAre(4, 5, 6, 7, 8, 9));
    EXPECT_THAT(done, testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(SessionLoad, AFailedRequestEndsTheLoad) {
    std::vector<Session> sessions = open_sessions(engine_, 1);
    auto list = requests();
    list[1].prompt = {};
    std::vector<std::size_t> done;
    EXPECT_THAT(
        [&] { serve(sessions, list, {.on_done = [&](std::size_t i) { done.push_back(i); }}); },
        ThrowsMessage<Error>(HasSubstr("prompt")));
    EXPECT_THAT(done, testing::ElementsAre(0));
}

TEST_F(SessionLoad, CancellingEndsIt) {
    std::vector<Session> sessions = open_sessions(engine_, 1);
    std::atomic<int> n_tokens = 0;
    const auto served = serve(sessions, requests(),
                              {.on_token = [&](std::size_t) { ++n_tokens; },
                               .is_cancelled = [&] { return n_tokens >= 2; }});
    EXPECT_EQ(served[0].result.stop, StopReason::cancelled);
    EXPECT_LT(served[0].times.token_ms.size(), 4u);
    EXPECT_TRUE(served[1].times.token_ms.empty());
}

TEST_F(SessionLoad, ARequestMayWaitForAnEvent) {
    std::vector<Session> sessions = open_sessions(engine_, 1);
    auto list = requests();
    int n_asked = 0;
    list[0].may_start = [&] { return ++n_asked == 3; };
    expect_answers(serve(sessions, list));
    EXPECT_EQ(n_asked, 3);
}

TEST_F(SessionLoad, AnEngineLoadedAgainHasItsSettingsAndNoRows) {
    const auto prompt = random_tokens(100, 256, 1);
    const auto first_tokens = [&] { return Session(engine_).generate(prompt, {.n_predict = 2}); };
    const Result before = first_tokens();
    load_again(engine_);
    EXPECT_EQ(engine_.config().n_ctx, 256);
    EXPECT_EQ(engine_.config().n_parallel, 3);
    const Result after = first_tokens();
    EXPECT_EQ(after.tokens, before.tokens);
    EXPECT_EQ(after.n_prompt_reused, 0);
}

}  // namespace
}  // namespace knap::test::session_load_test
