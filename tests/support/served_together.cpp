#include "support/served_together.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/baseline.h"
#include "support/loaded_model.h"

namespace knap::test {

std::vector<SharedRequest> mixed_requests(int n, int n_ctx) {
    const std::vector<SpeculationOptions> strategies{
        {.strategy = "autoregressive"},
        {.strategy = "lookup"},
        {.strategy = "static", .settings = {{"plan", "m1=skip"}}},
        {.strategy = "knapspec", .settings = {{"budget", "1"}, {"margin", "0"}}},
        {.strategy = "clasp", .draft_max = 2, .settings = {{"exit-confidence", "1e-6"}}},
        {.strategy = "swift",
         .draft_max = 5,
         .settings = {{"exit-confidence", "1e-6"}, {"tree", "off"}}},
        {.strategy = "del"},
    };
    std::vector<SharedRequest> requests;
    for (int i = 0; i < n; ++i) {
        const auto index = static_cast<std::size_t>(i);
        SharedRequest request{.prompt = random_tokens(1 + 37 * i % (n_ctx / 2), 256, 1)};
        if (i % 3 == 1) {  // another end
            request.prompt.push_back(static_cast<Token>(i));
        }
        request.options = {.n_predict = n_ctx / 8 + i % 7,
                           .speculation = strategies[index % strategies.size()],
                           .ignore_eos = true};
        if (i % 2 == 1) {
            request.options.sampling = {.temperature = 0.8f, .seed = 7 + index};
        }
        requests.push_back(std::move(request));
    }
    return requests;
}

std::vector<std::vector<Token>> texts_alone(RuntimeConfig config,
                                            const std::vector<SharedRequest>& requests) {
    config.n_parallel = 1;
    config.prefix_cache = false;
    Engine engine(config);
    std::vector<std::vector<Token>> texts;
    for (const SharedRequest& request : requests) {
        Session session(engine);
        texts.push_back(plain_text(session, request.prompt, request.options).tokens);
    }
    return texts;
}

Result answer(Session& session, const SharedRequest& request, const Observer& observer) {
    if (!request.continues) {
        session.reset();
    }
    std::atomic<int> n_tokens = 0;
    std::atomic<int> n_polls = 0;
    Observer watch = observer;
    watch.on_token = [&](const TokenEvent& event) {
        ++n_tokens;
        if (observer.on_token) {
            observer.on_token(event);
        }
    };
    watch.is_cancelled = [&] {
        return (request.n_wanted >= 0 && n_tokens >= request.n_wanted) ||
               (request.n_polls >= 0 && ++n_polls > request.n_polls);
    };
    return session.generate(request.prompt, request.options, watch);
}

void expect_text(const SharedRequest& request,
                 const Result& result,
                 const std::vector<Token>& expected) {
    if (result.stop != StopReason::cancelled) {
        EXPECT_EQ(result.tokens, expected);
        return;
    }
    EXPECT_TRUE(request.may_be_cancelled());
    ASSERT_LE(result.tokens.size(), expected.size());
    EXPECT_TRUE(std::equal(result.tokens.begin(), result.tokens.end(), expected.begin()));
}

std::vector<Result> expect_texts(Engine& engine,
                                 int n_sessions,
                                 const std::vector<SharedRequest>& requests,
                                 const std::vector<std::vector<Token>>& texts) {
    std::vector<Result> results(requests.size());
    std::atomic<std::size_t> next = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < n_sessions; ++i) {
            threads.emplace_back([&] {
                Session session(engine);
                for (std::size_t r = next++; r < requests.size(); r = next++) {
                    try {
                        results[r] = answer(session, requests[r]);
                    } catch (const std::exception& error) {
                        ADD_FAILURE() << "request " << r << ": " << error.what();
                    }
                }
            });
        }
    }
    for (std::size_t r = 0; r < requests.size(); ++r) {
        SCOPED_TRACE(testing::Message()
                     << "request " << r << ", " << requests[r].options.speculation.strategy);
        expect_text(requests[r], results[r], texts[r]);
    }
    return results;
}

}  // namespace knap::test
