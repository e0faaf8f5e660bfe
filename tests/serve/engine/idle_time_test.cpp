#include "serve/engine/idle_time.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include <gtest/gtest.h>

#include "support/eager_profile.h"
#include "support/http_rig.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::idle_time_test {
namespace {

using namespace std::chrono_literals;

// Runs a request to its end, which comes after `may_end` is true.
void ask_of(
    SessionPool& pool,
    std::vector<Token> prompt,
    const GenerateOptions& options,
    const std::function<bool()>& may_end = [] { return true; }) {
    std::promise<void> ended;
    std::vector<Job> jobs(1);
    jobs[0].prompt = std::move(prompt);
    jobs[0].options = options;
    jobs[0].on_part = [](AnswerPart) {};
    jobs[0].wait_for_reader = [&](const std::function<bool()>&) { eventually(may_end); };
    jobs[0].on_end = [&](JobEnd) { ended.set_value(); };
    ASSERT_EQ(pool.submit(std::move(jobs)).size(), 1u);
    ended.get_future().get();
}

class IdleTimeTest : public ::testing::Test {
  protected:
    void ask(const std::function<bool()>& may_end = [] { return true; }) {
        ask_of(pool_, random_tokens(20, 256, 1), {.n_predict = 5, .ignore_eos = true}, may_end);
    }

    Engine engine_{{.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 128, .n_threads = 1}};
    SessionPool pool_{engine_, 1, 1};
};

TEST_F(IdleTimeTest, WorkSeesTheLongestConversationAndStopsForARequest) {
    std::atomic<int> n_begun = 0;
    std::atomic<int> n_stopped = 0;
    std::atomic<std::size_t> n_text = 0;
    ask();
    const IdleTime idle(
        pool_, {.work =
                    [&](const std::vector<Token>& text, const std::function<bool()>& must_stop) {
                        n_text = text.size();
                        ++n_begun;
                        while (!must_stop()) {
                            std::this_thread::sleep_for(1ms);
                        }
                        ++n_stopped;
                        return false;
                    },
                .wait = 10ms});
    ASSERT_TRUE(eventually([&] { return n_begun == 1; }));
    EXPECT_EQ(n_text, 25u);
    EXPECT_EQ(n_stopped, 0);
    ask([&] { return n_stopped == 1; });
    ASSERT_TRUE(eventually([&] { return n_begun == 2; })) << "it begins again";
    EXPECT_EQ(n_stopped, 1);
}

TEST_F(IdleTimeTest, WorkThatFailsIsNotTriedAgain) {
    std::atomic<int> n_begun = 0;
    const IdleTime idle(
        pool_, {.work = [&](const std::vector<Token>&, const std::function<bool()>&) -> bool {
                    ++n_begun;
                    throw Error("no");
                },
                .wait = 1ms});
    ASSERT_TRUE(eventually([&] { return n_begun == 1; }));
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(n_begun, 1);
    ask();
}

TEST_F(IdleTimeTest, SessionsGoOnWithRenewedStrategies) {
    std::atomic<int> n_worked = 0;
    const IdleTime idle(pool_, {.work =
                                    [&](const std::vector<Token>&, const std::function<bool()>&) {
                                        ++n_worked;
                                        return true;
                                    },
                                .wait = 1ms});
    ASSERT_TRUE(eventually([&] { return n_worked > 0; }));
    ask();
    ask();
}

TEST_F(IdleTimeTest, SessionsWorkOnTheirConversationsThoughOtherWorkFails) {
    Engine engine(with_eager_profile(
        {.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 512, .n_threads = 1}));
    SessionPool pool(engine, 1, 1);
    GenerateOptions options{.n_predict = 30, .speculation = eager_knapspec(), .ignore_eos = true};
    options.speculation.settings["budget"] = "0";  // leaves everything to idle time
    options.speculation.settings["knapsack"] = "auto";
    ask_of(pool, random_tokens(240, 256, 1), options);
    std::atomic<int> n_failed = 0;
    std::atomic<int> n_pieces = 0;
    const IdleTime idle(
        pool, {.work = [&](const std::vector<Token>&, const std::function<bool()>&) -> bool {
                   ++n_failed;
                   throw Error("no");
               },
               .uses_sessions = true,
               .on_worked = [&](double seconds) { n_pieces += seconds > 0 ? 1 : 0; },
               .wait = 1ms});
    EXPECT_TRUE(eventually([&] { return n_pieces > 3; }));
    EXPECT_EQ(n_failed, 1);
}

TEST_F(IdleTimeTest, NothingIsReportedWhereThereIsNothingToDo) {
    std::atomic<int> n_pieces = 0;
    {
        const IdleTime idle(
            pool_, {.uses_sessions = true, .on_worked = [&](double) { ++n_pieces; }, .wait = 1ms});
        std::this_thread::sleep_for(50ms);
    }
    EXPECT_EQ(n_pieces, 0) << "there is no conversation";
}

}  // namespace
}  // namespace knap::test::idle_time_test
