#include "support/served_together.h"

#include <algorithm>
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "tools/measure/load/session_load.h"

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

void expect_texts_of_plain_decoding(RuntimeConfig config,
                                    int n_sessions,
                                    const std::vector<SharedRequest>& requests) {
    const auto texts = texts_alone(config, requests);
    config.n_parallel = n_sessions;
    Engine engine(config);
    std::vector<Session> sessions = open_sessions(engine, n_sessions);
    std::vector<LoadRequest> load;
    for (const SharedRequest& request : requests) {
        load.push_back({.prompt = request.prompt, .options = request.options});
    }
    const std::vector<ServedRequest> served = serve(sessions, load);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(testing::Message()
                     << "request " << i << ", " << requests[i].options.speculation.strategy);
        expect_text(requests[i], served[i].result, texts[i]);
    }
}

}  // namespace knap::test
