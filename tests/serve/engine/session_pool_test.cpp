#include "serve/engine/session_pool.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/http_rig.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::session_pool_test {
namespace {

using namespace std::chrono_literals;

// A job, and what it told.
struct Record {
    std::vector<Token> tokens{};
    std::string text{};
    std::promise<JobEnd> end{};
    std::atomic<int> n_parts = 0;
    std::atomic<bool> is_held = false;  // its session waits as for a slow reader

    Job job(std::vector<Token> prompt, GenerateOptions options) {
        Job made{.prompt = std::move(prompt), .options = std::move(options)};
        made.on_part = [this](AnswerPart part) {
            for (const AnswerToken& token : part.tokens) {
                tokens.push_back(token.token);
            }
            text += part.text;
            ++n_parts;
        };
        made.wait_for_reader = [this](const std::function<bool()>& gives_up) {
            while (is_held && !gives_up()) {
                std::this_thread::sleep_for(1ms);
            }
        };
        made.on_end = [this](JobEnd told) { end.set_value(std::move(told)); };
        return made;
    }
};

class SessionPoolTest : public ::testing::Test {
  protected:
    static std::vector<Token> prompt(unsigned seed) { return random_tokens(20, 256, seed); }
    static GenerateOptions request(int n_predict) {
        return {.n_predict = n_predict, .ignore_eos = true};
    }

    Engine engine_{{.model_path = tiny_model("tiny-llama", "Q8_0"),
                    .n_ctx = 256,
                    .n_parallel = 2,
                    .n_threads = 1}};
};

TEST_F(SessionPoolTest, AnswersAreThoseOfASessionAlone) {
    Session alone(engine_);
    std::vector<Record> records(6);
    SessionPool pool(engine_, 2, 6);
    std::vector<Job> jobs;
    for (unsigned i = 0; i < records.size(); ++i) {
        jobs.push_back(records[i].job(prompt(i), request(30)));
    }
    EXPECT_EQ(pool.submit(std::move(jobs)).size(), 6u);
    for (unsigned i = 0; i < records.size(); ++i) {
        const JobEnd end = records[i].end.get_future().get();
        EXPECT_EQ(end.outcome, JobOutcome::done);
        const Result plain = plain_text(alone, prompt(i), request(30));
        EXPECT_EQ(end.result.tokens, plain.tokens);
        EXPECT_EQ(records[i].tokens, plain.tokens);
        EXPECT_EQ(records[i].text + end.rest.text, plain.text);
    }
}

TEST_F(SessionPoolTest, FreeSessionsUseIdleTimeAndWriteTheSameText) {
    Engine engine(with_eager_profile({.model_path = tiny_model("tiny-llama", "Q8_0"),
                                      .n_ctx = 512,
                                      .n_parallel = 2,
                                      .n_threads = 1}));
    SessionPool pool(engine, 2, 2);
    const auto never = [] { return false; };
    EXPECT_FALSE(pool.use_idle_time(never)) << "there is no conversation yet";
    const std::vector<Token> text = random_tokens(240, 256, 1);
    GenerateOptions options = request(30);
    options.speculation = eager_knapspec();
    const auto ask = [&](Record& record) {
        std::vector<Job> jobs;
        jobs.push_back(record.job(text, options));
        EXPECT_EQ(pool.submit(std::move(jobs)).size(), 1u);
    };
    options.speculation.settings = {{"margin", "0"}, {"windows", "8/48"}, {"budget", "0"}};
    Record first;
    ask(first);
    first.end.get_future().get();
    EXPECT_FALSE(pool.use_idle_time([] { return true; }));
    int n_pieces = 0;
    while (pool.use_idle_time(never)) {
        ASSERT_LT(++n_pieces, 1000);
    }
    EXPECT_GT(n_pieces, 0);

    Record held;
    held.is_held = true;
    ask(held);
    EXPECT_FALSE(pool.use_idle_time(never)) << "the session has a job";
    held.is_held = false;
    held.end.get_future().get();
    Session alone(engine);
    const Result plain = plain_text(alone, text, options);
    EXPECT_EQ(first.tokens, plain.tokens);
    EXPECT_EQ(held.tokens, plain.tokens);
}

TEST_F(SessionPoolTest, QueuesAllJobsOfARequestOrNone) {
    std::vector<Record> records(4);
    SessionPool pool(engine_, 1, 1);
    records[0].is_held = true;
    std::vector<Job> first;
    first.push_back(records[0].job(prompt(1), request(5)));
    ASSERT_EQ(pool.submit(std::move(first)).size(), 1u);
    std::vector<Job> two;
    two.push_back(records[1].job(prompt(2), request(5)));
    two.push_back(records[2].job(prompt(3), request(5)));
    EXPECT_TRUE(pool.submit(std::move(two)).empty());
    EXPECT_EQ(pool.n_waiting(), 0);
    std::vector<Job> one;
    one.push_back(records[3].job(prompt(2), request(5)));
    EXPECT_EQ(pool.submit(std::move(one)).size(), 1u);
    EXPECT_EQ(pool.n_waiting(), 1);
    EXPECT_GT(pool.expected_wait().count(), 0);
    records[0].is_held = false;
    EXPECT_EQ(records[3].end.get_future().get().outcome, JobOutcome::done);
}

TEST_F(SessionPoolTest, WhenAJobHasEndedItsSessionIsFree) {
    Record next;
    std::promise<std::size_t> n_accepted;
    SessionPool pool(engine_, 1, 0);
    std::vector<Job> jobs;
    Record first;
    jobs.push_back(first.job(prompt(1), request(5)));
    jobs[0].on_end = [&](JobEnd) {
        std::vector<Job> more;
        more.push_back(next.job(prompt(2), request(5)));
        n_accepted.set_value(pool.submit(std::move(more)).size());
    };
    ASSERT_EQ(pool.submit(std::move(jobs)).size(), 1u);
    ASSERT_EQ(n_accepted.get_future().get(), 1u);
    EXPECT_EQ(next.end.get_future().get().outcome, JobOutcome::done);
}

TEST_F(SessionPoolTest, CancelsWhatWaitsAndWhatRuns) {
    std::vector<Record> records(2);
    SessionPool pool(engine_, 1, 4);
    records[0].is_held = true;
    std::vector<Job> jobs;
    jobs.push_back(records[0].job(prompt(1), request(100)));
    jobs.push_back(records[1].job(prompt(2), request(5)));
    const auto tickets = pool.submit(std::move(jobs));
    ASSERT_EQ(tickets.size(), 2u);
    ASSERT_TRUE(eventually([&] { return records[0].n_parts > 0; }));
    pool.cancel(tickets[1]);
    EXPECT_EQ(records[1].end.get_future().get().outcome, JobOutcome::cancelled);
    EXPECT_EQ(pool.n_waiting(), 0);
    pool.cancel(tickets[0]);
    EXPECT_EQ(records[0].end.get_future().get().outcome, JobOutcome::cancelled);
    EXPECT_TRUE(eventually([&] { return pool.n_running() == 0; }));
    pool.cancel(tickets[0]);  // has no effect
}

TEST_F(SessionPoolTest, AtItsDeadlineAJobEndsWithWhatItHas) {
    std::vector<Record> records(2);
    SessionPool pool(engine_, 1, 4);
    std::vector<Job> jobs;
    jobs.push_back(records[0].job(prompt(1), request(200)));
    jobs.push_back(records[1].job(prompt(2), request(5)));
    records[0].is_held = true;
    jobs[0].deadline = std::chrono::steady_clock::now() + 200ms;
    jobs[1].deadline = std::chrono::steady_clock::now();
    pool.submit(std::move(jobs));
    pool.expire_waiting();
    EXPECT_EQ(records[1].end.get_future().get().outcome, JobOutcome::expired);
    const JobEnd end = records[0].end.get_future().get();
    EXPECT_EQ(end.outcome, JobOutcome::expired);
    EXPECT_EQ(end.result.tokens, records[0].tokens);
}

TEST_F(SessionPoolTest, ItsEndCancelsEverything) {
    std::vector<Record> records(3);
    {
        SessionPool pool(engine_, 1, 4);
        std::vector<Job> jobs;
        for (unsigned i = 0; i < records.size(); ++i) {
            records[i].is_held = true;
            jobs.push_back(records[i].job(prompt(i), request(100)));
        }
        pool.submit(std::move(jobs));
        ASSERT_TRUE(eventually([&] { return records[0].n_parts > 0; }));
    }
    for (Record& record : records) {
        EXPECT_EQ(record.end.get_future().get().outcome, JobOutcome::cancelled);
    }
}

TEST_F(SessionPoolTest, ChecksWithoutRunning) {
    SessionPool pool(engine_, 1, 0);
    Record record;
    Job good = record.job(prompt(1), request(5));
    EXPECT_NO_THROW(pool.check(good));
    good.options.speculation.strategy = "magic";
    EXPECT_THROW(pool.check(good), Error);
    Job long_prompt = record.job(random_tokens(300, 256, 1), request(5));
    EXPECT_THROW(pool.check(long_prompt), Error);
}

TEST_F(SessionPoolTest, TellsWhatItsSessionsDo) {
    Record record;
    SessionPool pool(engine_, 2, 0);
    record.is_held = true;
    std::vector<Job> jobs;
    jobs.push_back(record.job(prompt(1), request(5)));
    pool.submit(std::move(jobs));
    ASSERT_TRUE(eventually([&] { return record.n_parts > 0; }));
    const std::vector<SessionState> states = pool.sessions();
    ASSERT_EQ(states.size(), 2u);
    EXPECT_TRUE(states[0].is_processing);
    EXPECT_EQ(states[0].n_prompt, 20);
    EXPECT_EQ(states[0].n_prompt_done, 20);
    EXPECT_EQ(states[0].n_generated, 1);
    EXPECT_FALSE(states[1].is_processing);
    EXPECT_EQ(pool.n_running(), 1);
    record.is_held = false;
}

}  // namespace
}  // namespace knap::test::session_pool_test
