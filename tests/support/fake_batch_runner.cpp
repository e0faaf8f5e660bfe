#include "support/fake_batch_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"

namespace knap::test {

TestRun::TestRun(int n_rows, PassKind kind, const ModulePlan* plan, Token first_token)
    : tokens(static_cast<std::size_t>(n_rows)), logit_rows{n_rows - 1} {
    std::iota(tokens.begin(), tokens.end(), first_token);
    run.n_rows = n_rows;
    run.request.tokens = tokens;
    run.request.logit_rows = logit_rows;
    run.request.kind = kind;
    run.request.plan = plan;
    run.result = &result;
}

void TestRun::cancel_if(std::function<bool()> is_unwanted) {
    is_cancelled = std::move(is_unwanted);
    run.is_cancelled = &is_cancelled;
}

int FakeBatchRunner::SeenPass::n_rows() const {
    return std::accumulate(runs.begin(), runs.end(), 0,
                           [](int sum, const SeenRun& seen) { return sum + seen.n_rows; });
}

std::vector<Token> FakeBatchRunner::SeenPass::first_tokens() const {
    std::vector<Token> tokens;
    for (const SeenRun& seen : runs) {
        tokens.push_back(seen.first_token);
    }
    std::ranges::sort(tokens);
    return tokens;
}

void FakeBatchRunner::run(std::span<RowRun* const> runs) {
    EXPECT_FALSE(is_running_.exchange(true)) << "two passes at a time";
    SeenPass pass{.thread = std::this_thread::get_id()};
    for (RowRun* run : runs) {
        pass.runs.push_back({run->request.tokens.front(), run->n_rows,
                             static_cast<int>(run->request.logit_rows.size())});
        EXPECT_TRUE(run == runs.front() || can_share_pass(*runs.front(), *run));
        EXPECT_GE(run->n_rows, 1);
    }
    EXPECT_LE(pass.n_rows(), runs.size() == 1 ? limits_.max_rows : limits_.max_shared_rows);
    {
        const std::lock_guard lock(mutex_);
        passes_.push_back(pass);
    }
    struct End {
        std::atomic<bool>& is_running;
        ~End() { is_running = false; }
    } const end{is_running_};
    const Stopwatch watch;
    if (on_pass) {
        on_pass(runs);
    }
    for (RowRun* run : runs) {
        const auto rows = run->request.tokens.first(static_cast<std::size_t>(run->n_rows));
        run->result->is_complete = true;
        run->result->n_rows = run->n_rows;
        run->result->choices.assign(rows.begin(), rows.end());
        run->result->logits.assign(run->request.logit_rows.size(), 0.0f);
    }
    set_pass_facts(runs, watch.elapsed_ms());
}

std::vector<FakeBatchRunner::SeenPass> FakeBatchRunner::passes() const {
    const std::lock_guard lock(mutex_);
    return passes_;
}

}  // namespace knap::test
