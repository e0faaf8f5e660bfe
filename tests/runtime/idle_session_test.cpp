// Pieces of idle work between requests: they come to an end, can be cancelled, and change no text.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "runtime/session_impl.h"
#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::idle_session_test {
namespace {

// With a profile by which plans pay, so that there is something to search for.
RuntimeConfig config_of(int n_parallel = 1) {
    return with_eager_profile({.model_path = tiny_model("tiny-llama", "Q8_0"),
                               .n_ctx = 512,
                               .n_parallel = n_parallel,
                               .n_threads = 1});
}

// A knapsack only between requests: `budget=0` leaves none for it within them.
GenerateOptions options_of(int n_predict, const SamplingOptions& sampling = {}) {
    SpeculationOptions how = eager_knapspec();
    how.settings = {{"margin", "0"}, {"windows", "8/48"}, {"budget", "0"}};
    return {.n_predict = n_predict, .sampling = sampling, .speculation = how, .ignore_eos = true};
}

int n_pieces_of(Session& session) {
    int n = 0;
    while (n < 1000 && session.use_idle_time()) {
        ++n;
    }
    EXPECT_LT(n, 1000) << "it comes to an end";
    return n;
}

struct Turn {
    std::vector<Token> tokens;
    int n_drafted = 0;
};

// A conversation of three turns with `n_pieces` pieces between them; -1: all there are.
std::vector<Turn> talk(Session& session, const SamplingOptions& sampling, int n_pieces) {
    std::vector<Turn> turns;
    std::vector<Token> text = random_tokens(150, 256, 1);
    for (int turn = 0; turn < 3; ++turn) {
        const Result result = session.generate(text, options_of(60, sampling));
        turns.push_back({.tokens = result.tokens, .n_drafted = result.speculation.n_drafted});
        text.assign(session.history().begin(), session.history().end());
        for (int i = 0; n_pieces >= 0 && i < n_pieces; ++i) {
            session.use_idle_time();
        }
        if (n_pieces < 0) {
            EXPECT_GT(n_pieces_of(session) + turn, 0) << "once at this context";
        }
        text.push_back(7);
    }
    return turns;
}

class IdleSession : public ::testing::TestWithParam<float> {};

TEST_P(IdleSession, WritesTheSameTextWithPiecesBetweenItsTurns) {
    const SamplingOptions sampling{.temperature = GetParam(), .seed = 3};
    Engine engine(config_of());
    std::vector<std::vector<Token>> expected;
    Session plain(engine);
    std::vector<Token> text = random_tokens(150, 256, 1);
    for (int turn = 0; turn < 3; ++turn) {
        expected.push_back(plain_text(plain, text, options_of(60, sampling)).tokens);
        text.assign(plain.history().begin(), plain.history().end());
        text.push_back(7);
    }
    for (const int n_pieces : {0, 1, 5, -1}) {
        Session session(engine);
        const std::vector<Turn> turns = talk(session, sampling, n_pieces);
        int n_drafted = 0;
        for (std::size_t i = 0; i < turns.size(); ++i) {
            EXPECT_EQ(turns[i].tokens, expected[i]) << n_pieces << " pieces, turn " << i;
            n_drafted += turns[i].n_drafted;
        }
        EXPECT_GT(n_drafted, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Temperatures,
                         IdleSession,
                         ::testing::Values(0.0f, 0.9f),
                         [](const auto& test) { return test.param > 0 ? "Sampled" : "Greedy"; });

std::vector<PageId> pages_of(const Session::Impl& session) {
    return {session.cache.pages().begin(), session.cache.pages().end()};
}

TEST(IdleTimeOfASession, LeavesTheConversationAndItsPagesAsTheyWere) {
    Engine engine(config_of());
    Session::Impl session(impl_of(engine));
    session.generate(random_tokens(200, 256, 1), options_of(40), {});
    const std::vector<Token> history = session.history;
    const int n_committed = session.cache.committed();
    const std::vector<PageId> pages = pages_of(session);
    int n_pieces = 0;
    while (session.use_idle_time({})) {
        ASSERT_LT(++n_pieces, 1000);
    }
    EXPECT_GT(n_pieces, 2 * engine.info().n_layers) << "a module each, and replays";
    EXPECT_EQ(session.history, history);
    EXPECT_EQ(session.cache.committed(), n_committed);
    EXPECT_EQ(pages_of(session), pages);
}

TEST(IdleTimeOfASession, HasNothingToDoBeforeTheFirstRequestAndAfterAReset) {
    Engine engine(config_of());
    Session session(engine);
    EXPECT_FALSE(session.use_idle_time());
    session.generate(random_tokens(200, 256, 1), options_of(40));
    session.reset();
    EXPECT_FALSE(session.use_idle_time());
    plain_text(session, random_tokens(200, 256, 1), options_of(40));
    EXPECT_FALSE(session.use_idle_time()) << "plain decoding searches for nothing";
}

TEST(IdleTimeOfASession, GoesOnWhereItWasCancelled) {
    Engine engine(config_of());
    Session steady(engine);
    steady.generate(random_tokens(200, 256, 1), options_of(40));
    const int n_all = n_pieces_of(steady);

    Session session(engine);
    session.generate(random_tokens(200, 256, 1), options_of(40));
    int n = 0;
    for (int i = 0; n < n_all && i < 10 * n_all; ++i) {
        EXPECT_FALSE(session.use_idle_time([] { return true; }));
        n += session.use_idle_time() ? 1 : 0;
    }
    EXPECT_EQ(n, n_all);
    EXPECT_FALSE(session.use_idle_time());
}

TEST(IdleTimeOfASession, TakesPagesFromNobody) {
    RuntimeConfig config = config_of(/*n_parallel=*/2);
    config.n_cache_rows = 512;
    Engine engine(config);
    Session::Impl first(impl_of(engine));
    Session::Impl second(impl_of(engine));
    first.generate(random_tokens(230, 256, 1), options_of(20), {});
    second.generate(random_tokens(230, 256, 2), options_of(20), {});
    const std::vector<PageId> pages = pages_of(first);
    EXPECT_FALSE(pages.empty());
    while (second.use_idle_time({})) {
    }
    EXPECT_EQ(pages_of(first), pages);
    EXPECT_EQ(first.cache.committed(), 249);
}

// Also where pages are short: the other session waits for the piece under way, at most.
TEST(IdleTimeOfASession, OthersWriteTheirTextsMeanwhile) {
    for (const int n_cache_rows : {0, 768}) {
        RuntimeConfig config = config_of(/*n_parallel=*/2);
        config.n_cache_rows = n_cache_rows;
        Engine engine(config);
        Session idle(engine);
        Session busy(engine);
        const std::vector<Token> text = random_tokens(240, 256, 1);
        const std::vector<Token> other = random_tokens(200, 256, 2);
        const std::vector<Token> expected = plain_text(busy, other, options_of(60)).tokens;
        const std::vector<Token> own = plain_text(idle, text, options_of(60)).tokens;
        EXPECT_EQ(idle.generate(text, options_of(60)).tokens, own);
        {
            std::atomic<bool> is_over = false;
            const std::jthread pieces([&] {
                while (!is_over) {
                    idle.use_idle_time();
                }
            });
            for (int i = 0; i < 4; ++i) {
                EXPECT_EQ(busy.generate(other, options_of(60)).tokens, expected);
                busy.reset();
            }
            is_over = true;
        }
        EXPECT_EQ(idle.generate(text, options_of(60)).tokens, own);
    }
}

}  // namespace
}  // namespace knap::test::idle_session_test
