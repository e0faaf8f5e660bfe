// A BatchRunner that computes nothing: it checks and records the passes that it is asked for, and
// runs of rows to ask it for.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "forward/batch.h"

namespace knap::test {

// A run with its memory. The tokens are numbers from `first_token` on; only the last row has
// logits.
struct TestRun {
    TestRun(int n_rows,
            PassKind kind = PassKind::decode,
            const ModulePlan* plan = nullptr,
            Token first_token = 0);
    TestRun(const TestRun&) = delete;
    TestRun& operator=(const TestRun&) = delete;

    void cancel_if(std::function<bool()> is_unwanted);

    std::vector<Token> tokens;
    std::vector<int> logit_rows;
    std::function<bool()> is_cancelled;
    RunResult result;
    RowRun run;
};

// Completes runs: `choices` of a result are the tokens of its rows, and each logit row has one
// number. Fails the test if runs may not share a pass, if a pass is too large, or if two overlap.
class FakeBatchRunner final : public BatchRunner {
  public:
    struct SeenRun {
        Token first_token = 0;  // says which run it is
        int n_rows = 0;
        int n_logit_rows = 0;
    };
    struct SeenPass {
        std::vector<SeenRun> runs;
        std::thread::id thread;

        int n_rows() const;
        std::vector<Token> first_tokens() const;  // sorted
    };

    explicit FakeBatchRunner(const PassLimits& limits) : limits_(limits) {}

    PassLimits limits() const override { return limits_; }
    void run(std::span<RowRun* const> runs) override;

    bool is_running() const { return is_running_; }
    std::vector<SeenPass> passes() const;

    // In every pass, after it is recorded and before it completes: may block, sleep or throw. Set
    // it before the first pass.
    std::function<void(std::span<RowRun* const> runs)> on_pass;

  private:
    PassLimits limits_;
    std::atomic<bool> is_running_ = false;
    mutable std::mutex mutex_;
    std::vector<SeenPass> passes_;
};

}  // namespace knap::test
