// Several sessions of one engine, one of which goes wrong, waits for pages or goes away: the others
// do not notice, and the errors are those of the request alone.
#include <atomic>
#include <filesystem>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/held_scheduler.h"
#include "support/loaded_model.h"
#include "support/served_together.h"
#include "support/tiny_model.h"

namespace knap::test::sessions_error_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kContext = 700;

class SessionsTogether : public ::testing::Test {
  protected:
    // Pages for one whole context.
    RuntimeConfig config{
        .model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = kContext, .n_threads = 1};
    Engine engine{config};

    static SharedRequest request(int n_prompt, int n_predict, unsigned seed) {
        return {
            .prompt = random_tokens(n_prompt, 256, seed),
            .options = {
                .n_predict = n_predict, .speculation = {.strategy = "lookup"}, .ignore_eos = true}};
    }
    void expect_alone(const SharedRequest& request, const Result& result) const {
        EXPECT_EQ(result.tokens, texts_alone(config, {request}).front());
    }
    std::string error_of(Session& session, const SharedRequest& request) {
        try {
            answer(session, request);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    // A request on a thread of its own that stops after its first token, with its pages, until it
    // is told to go on.
    class Held {
      public:
        Held(Engine& engine, const SharedRequest& request)
            : thread_([this, &engine, request] {
                  Session session(engine);
                  result_ = answer(session, request, {.on_token = [this](const TokenEvent&) {
                                       has_token_ = true;
                                       has_token_.notify_all();
                                       may_go_on_.wait(false);
                                   }});
              }) {
            has_token_.wait(false);
        }
        ~Held() { go_on(); }
        void go_on() {
            may_go_on_ = true;
            may_go_on_.notify_all();
        }
        const Result& result() {
            go_on();
            thread_.join();
            return result_;
        }

      private:
        std::atomic<bool> has_token_ = false;
        std::atomic<bool> may_go_on_ = false;
        Result result_;
        std::jthread thread_;
    };
};

TEST_F(SessionsTogether, APromptThatCanNeverFitIsRefusedAtOnce) {
    const SharedRequest all_pages = request(600, 20, 1);
    Held held(engine, all_pages);
    Session session(engine);
    EXPECT_THAT(error_of(session, request(kContext + 1, 1, 2)),
                AllOf(HasSubstr("prompt: expected at most 700 tokens"), HasSubstr("found 701"),
                      Not(HasSubstr("\n"))));
    expect_alone(all_pages, held.result());
}

TEST_F(SessionsTogether, WithoutPagesTheYoungestWaitsAndFinishesLater) {
    const SharedRequest all_pages = request(600, 20, 1);
    const SharedRequest waits = request(300, 20, 2);
    Held held(engine, all_pages);
    std::atomic<int> n_polls = 0;
    std::atomic<bool> has_begun = false;
    std::optional<Result> result;
    std::jthread thread([&] {
        Session session(engine);
        result = session.generate(waits.prompt, waits.options,
                                  {.on_prefill = [&](int n_rows, int) { has_begun = n_rows > 0; },
                                   .is_cancelled =
                                       [&] {
                                           ++n_polls;
                                           return false;
                                       }});
    });
    wait_until([&] { return n_polls > 5; });
    EXPECT_FALSE(has_begun);
    expect_alone(all_pages, held.result());
    thread.join();
    expect_alone(waits, *result);
}

// The older one needs all pages before it ends, when the younger one has written part of its text.
TEST_F(SessionsTogether, TheYoungestGivesUpItsPagesAndWritesTheSameText) {
    const SharedRequest older = request(250, 400, 1);
    const SharedRequest younger = request(270, 400, 2);
    Held held(engine, older);
    std::atomic<int> n_tokens = 0;
    std::optional<Result> result;
    std::jthread thread([&] {
        Session session(engine);
        result = answer(session, younger, {.on_token = [&](const TokenEvent&) { ++n_tokens; }});
    });
    wait_until([&] { return n_tokens >= 5; });
    const Result& first = held.result();
    EXPECT_LT(n_tokens, younger.options.n_predict);
    thread.join();
    expect_alone(older, first);
    expect_alone(younger, *result);
}

TEST_F(SessionsTogether, APromptCacheTakesThePagesOfSessionsWithoutARequest) {
    const std::filesystem::path path = temporary_folder() / "taken.cache";
    const SharedRequest saved = request(600, 1, 1);
    Session session(engine);
    answer(session, saved);
    session.save_prompt_cache(path);
    Session other(engine);
    answer(other, request(600, 1, 2));  // has all pages now
    session.load_prompt_cache(path);
    SharedRequest again = saved;
    again.continues = true;
    const Result result = answer(session, again);
    EXPECT_EQ(result.n_prompt_reused, 599);
    expect_alone(saved, result);
}

TEST_F(SessionsTogether, SessionsComeAndGoWhileAnotherDecodes) {
    config.n_parallel = 2;
    engine = Engine(config);
    const SharedRequest stays = request(100, 300, 1);
    const SharedRequest goes = request(90, 3, 2);
    const std::vector<Token> text = texts_alone(config, {goes}).front();
    std::atomic<bool> is_done = false;
    std::latch has_begun(1);
    std::optional<Result> result;
    std::jthread thread([&] {
        Session session(engine);
        result = answer(session, stays, {.on_prefill = [&](int n_rows, int n_prompt) {
                            if (n_rows == n_prompt) {
                                has_begun.count_down();
                            }
                        }});
        is_done = true;
    });
    has_begun.wait();
    int n_gone = 0;
    while (!is_done) {
        Session session(engine);
        SharedRequest request = goes;
        request.n_polls = n_gone % 2 == 0 ? -1 : n_gone;
        expect_text(request, answer(session, request), text);
        ++n_gone;
    }
    EXPECT_GT(n_gone, 1);
    thread.join();
    expect_alone(stays, *result);
}

TEST_F(SessionsTogether, ABadRequestIsTheProblemOfItsSessionAlone) {
    config.n_parallel = 2;
    engine = Engine(config);
    const SharedRequest good = request(100, 100, 1);
    Held held(engine, good);
    Session session(engine);
    SharedRequest bad = request(120, 10, 2);
    bad.options.speculation.strategy = "none";
    EXPECT_THAT(error_of(session, bad), HasSubstr("none"));
    bad = request(120, 10, 2);
    bad.options.sampling.temperature = -1;
    EXPECT_THAT(error_of(session, bad), HasSubstr("temperature"));
    bad = request(120, 10, 2);
    bad.prompt[7] = -1;
    EXPECT_THAT(error_of(session, bad), HasSubstr("found -1 at position 7"));
    held.go_on();
    const SharedRequest next = request(130, 20, 3);
    expect_alone(next, answer(session, next));
    expect_alone(good, held.result());
}

// At any token, also inside of what a round accepted.
TEST_F(SessionsTogether, AnExceptionOfACallerEndsItsRequestAlone) {
    config.n_parallel = 2;
    engine = Engine(config);
    const SharedRequest good = request(100, 300, 1);
    Held held(engine, good);
    held.go_on();
    Session session(engine);
    const std::vector<Token> once = random_tokens(40, 256, 4);
    SharedRequest repeats = request(1, 40, 2);  // so that drafts are accepted
    for (int i = 0; i < 3; ++i) {
        repeats.prompt.insert(repeats.prompt.end(), once.begin(), once.end());
    }
    const std::vector<Token> text = texts_alone(config, {repeats}).front();
    for (int n_last = 1; n_last < 30; ++n_last) {
        int n_tokens = 0;
        const Observer throws{.on_token = [&](const TokenEvent&) {
            if (++n_tokens == n_last) {
                throw std::runtime_error("enough");
            }
        }};
        repeats.continues = n_last % 2 == 0;
        EXPECT_THROW(answer(session, repeats, throws), std::runtime_error);
        EXPECT_EQ(answer(session, repeats).tokens, text);
    }
    expect_alone(good, held.result());
}

}  // namespace
}  // namespace knap::test::sessions_error_test
