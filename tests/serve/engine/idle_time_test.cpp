#include "serve/engine/idle_time.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include <gtest/gtest.h>

#include "support/http_rig.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::idle_time_test {
namespace {

using namespace std::chrono_literals;

class IdleTimeTest : public ::testing::Test {
  protected:
    // Runs a request to its end, which comes after `may_end` is true.
    void ask(const std::function<bool()>& may_end = [] { return true; }) {
        std::promise<void> ended;
        std::vector<Job> jobs(1);
        jobs[0].prompt = random_tokens(20, 256, 1);
        jobs[0].options = {.n_predict = 5, .ignore_eos = true};
        jobs[0].on_part = [](AnswerPart) {};
        jobs[0].wait_for_reader = [&](const std::function<bool()>&) { eventually(may_end); };
        jobs[0].on_end = [&](JobEnd) { ended.set_value(); };
        ASSERT_EQ(pool_.submit(std::move(jobs)).size(), 1u);
        ended.get_future().get();
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

TEST_F(IdleTimeTest, SessionsWorkOnTheirConversationsWithoutOtherWork) {
    std::atomic<int> n_pieces = 0;
    const IdleTime idle(pool_,
                        {.uses_sessions = true,
                         .on_worked = [&](double seconds) { n_pieces += seconds >= 0 ? 1 : 0; },
                         .wait = 1ms});
    ask();
    EXPECT_TRUE(eventually([&] { return n_pieces > 3; }));
    ask();
}

}  // namespace
}  // namespace knap::test::idle_time_test
