// Random conversations on several sessions of one engine at once: requests of every strategy, with
// beginnings in common, that come and go at random, are cancelled, go on with a session or replace
// it. Each must get the text that plain decoding writes for it alone. What is asked for depends
// only on the seed; who meets whom in a pass does not.
#pragma once

#include <chrono>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "support/served_together.h"
#include "support/strategy_cases.h"

namespace knap::test {

struct StressTurn {
    SharedRequest request;
    std::vector<Token> text;            // plain decoding's
    bool is_new_session = false;        // the session before is destroyed
    std::chrono::microseconds pause{};  // before the request
};
using StressConversation = std::vector<StressTurn>;

class StressWriter {
  public:
    // For engines with `config`. Requests take the strategies of `cases` in turn, with prompts in
    // the manner of the first.
    StressWriter(const RuntimeConfig& config, std::span<const StrategyCase> cases, unsigned seed);

    StressConversation next(int n_turns);

  private:
    int draw(int from, int to);
    bool happens(double probability);
    std::vector<Token> new_prompt();
    std::vector<Token> some_tokens(int n);
    GenerateOptions new_options();
    StressTurn next_turn(const StressConversation& before);

    std::mt19937 random_;
    std::vector<StrategyCase> cases_;
    std::size_t n_requests_ = 0;
    Engine engine_;
    Session session_;  // for plain decoding
    std::vector<std::vector<Token>> documents_;
};

// What happened to all requests of a stress test, so that it can show what it has tested.
struct StressCounts {
    int n_cancelled = 0;
    int n_reused = 0;               // requests that went on with rows of their session
    int n_shared = 0;               // requests with rows from the prefix cache
    int n_lost = 0;                 // times that rows of a prompt were given up and computed again
    int n_drafted = 0;              // tokens
    int n_accepted = 0;             // of these
    std::int64_t n_other_rows = 0;  // rows of others in the passes of all requests
    std::set<std::vector<Token>> pages;  // beginnings whose last page was listed when full

    void add(const StressTurn& turn, const Result& result, int page_rows);
};

// Serves the conversations at once, a thread each, and compares their texts.
StressCounts expect_conversations(Engine& engine,
                                  std::span<const StressConversation> conversations);

}  // namespace knap::test
