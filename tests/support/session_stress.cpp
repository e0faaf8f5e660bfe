#include "support/session_stress.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/engine_impl.h"
#include "support/baseline.h"

namespace knap::test {
namespace {

RuntimeConfig for_one_session(RuntimeConfig config) {
    config.n_parallel = 1;
    config.prefix_cache = false;
    return config;
}

constexpr int kDocuments = 6;
constexpr int kMostPredicted = 40;
constexpr int kMostAdded = 30;  // tokens after a known beginning

}  // namespace

StressWriter::StressWriter(const RuntimeConfig& config,
                           std::span<const StrategyCase> cases,
                           unsigned seed)
    : random_(seed),
      cases_(cases.begin(), cases.end()),
      engine_(for_one_session(config)),
      session_(engine_) {
    const int n_most = config.n_ctx - kMostPredicted - kMostAdded;
    for (unsigned i = 0; i < kDocuments; ++i) {
        std::vector<Token> document =
            prompt_of(cases_.front(), engine_, cases_.front().is_eager ? n_most / 4 : n_most, i);
        documents_.push_back(std::move(document));
    }
}

int StressWriter::draw(int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random_);
}

bool StressWriter::happens(double probability) {
    return std::bernoulli_distribution(probability)(random_);
}

std::vector<Token> StressWriter::some_tokens(int n) {
    std::vector<Token> tokens;
    for (int i = 0; i < n; ++i) {
        tokens.push_back(draw(0, 255));
    }
    return tokens;
}

// The beginning of a document, often one of more than a page, and sometimes an end of its own.
std::vector<Token> StressWriter::new_prompt() {
    const std::vector<Token>& document =
        documents_[static_cast<std::size_t>(draw(0, kDocuments - 1))];
    const int n_all = static_cast<int>(document.size());
    const int n = happens(0.3) ? draw(1, 40) : draw(n_all / 3, n_all);
    std::vector<Token> prompt(document.begin(), document.begin() + n);
    if (happens(0.5)) {
        std::ranges::copy(some_tokens(draw(1, kMostAdded)), std::back_inserter(prompt));
    }
    return prompt;
}

GenerateOptions StressWriter::new_options() {
    GenerateOptions options{.n_predict = draw(1, kMostPredicted),
                            .speculation = cases_[n_requests_ % cases_.size()].speculation,
                            .ignore_eos = true};
    if (happens(0.5)) {
        options.sampling = {.temperature = 0.8f, .seed = n_requests_};
    }
    ++n_requests_;
    return options;
}

StressTurn StressWriter::next_turn(const StressConversation& before) {
    StressTurn turn{.request = {.prompt = new_prompt(), .options = new_options()},
                    .is_new_session = happens(0.2),
                    .pause = std::chrono::microseconds(happens(0.4) ? draw(0, 4000) : 0)};
    SharedRequest& request = turn.request;
    request.continues = happens(0.4);
    if (!before.empty() && happens(0.4)) {
        const StressTurn& last = before.back();
        std::vector<Token> prompt = last.request.prompt;
        std::ranges::copy(last.text, std::back_inserter(prompt));
        std::ranges::copy(some_tokens(draw(1, kMostAdded)), std::back_inserter(prompt));
        if (static_cast<int>(prompt.size()) < engine_.config().n_ctx) {
            request.prompt = std::move(prompt);
            request.continues = true;
        }
    }
    if (n_requests_ % 6 == 3) {
        request.n_wanted = draw(0, request.options.n_predict / 2);
    } else if (happens(0.15)) {
        request.n_polls = draw(0, 100);
    }
    turn.text = plain_text(session_, request.prompt, request.options).tokens;
    return turn;
}

StressConversation StressWriter::next(int n_turns) {
    StressConversation turns;
    for (int i = 0; i < n_turns; ++i) {
        turns.push_back(next_turn(turns));
    }
    return turns;
}

void StressCounts::add(const StressTurn& turn, const Result& result, int page_rows) {
    n_cancelled += result.stop == StopReason::cancelled ? 1 : 0;
    n_reused += result.n_prompt_reused > 0 ? 1 : 0;
    n_shared += result.n_prompt_shared > 0 ? 1 : 0;
    n_drafted += result.speculation.n_drafted;
    n_accepted += result.speculation.n_accepted;
    n_other_rows += result.n_other_rows;
    if (result.stop == StopReason::cancelled) {
        return;
    }
    const std::vector<Token>& prompt = turn.request.prompt;
    for (std::ptrdiff_t n = page_rows; n <= std::ssize(prompt); n += page_rows) {
        pages.emplace(prompt.begin(), prompt.begin() + n);
    }
}

namespace {

// One conversation, on the calling thread.
class StressClient {
  public:
    StressClient(Engine& engine, const StressConversation& turns)
        : engine_(engine), turns_(turns) {}

    void serve() {
        for (const StressTurn& turn : turns_) {
            std::this_thread::sleep_for(turn.pause);
            try {
                serve(turn);
            } catch (const std::exception& error) {
                ADD_FAILURE() << turn.request.options.speculation.strategy << ": " << error.what();
                return;
            }
        }
        session_.reset();
    }

    void compare(StressCounts& counts) const {
        const int page_rows = impl_of(engine_).pipeline().memory().page_rows();
        for (std::size_t i = 0; i < results_.size(); ++i) {
            SCOPED_TRACE(testing::Message()
                         << "turn " << i << ", " << turns_[i].request.options.speculation.strategy);
            expect_text(turns_[i].request, results_[i], turns_[i].text);
            counts.add(turns_[i], results_[i], page_rows);
        }
        counts.n_lost += n_lost_;
    }

  private:
    void serve(const StressTurn& turn) {
        if (turn.is_new_session || !session_) {
            session_.reset();
            session_.emplace(engine_);
        }
        int n_read = 0;
        const Observer observer{.on_prefill = [&](int n_rows, int) {
            n_lost_ += n_rows < n_read ? 1 : 0;
            n_read = n_rows;
        }};
        results_.push_back(answer(*session_, turn.request, observer));
    }

    Engine& engine_;
    const StressConversation& turns_;
    std::optional<Session> session_;
    std::vector<Result> results_;
    int n_lost_ = 0;
};

}  // namespace

StressCounts expect_conversations(Engine& engine,
                                  std::span<const StressConversation> conversations) {
    std::vector<StressClient> clients;
    for (const StressConversation& turns : conversations) {
        clients.emplace_back(engine, turns);
    }
    {
        std::vector<std::jthread> threads;
        for (StressClient& client : clients) {
            threads.emplace_back([&client] { client.serve(); });
        }
    }
    StressCounts counts;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "conversation " << i);
        clients[i].compare(counts);
    }
    return counts;
}

}  // namespace knap::test
