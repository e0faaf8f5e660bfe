#include "graph/attention/attention_tasks.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "kernels/attention/attention.h"

namespace knap::test::attention_tasks_test {
namespace {

ModelConfig config_of(int n_heads, int n_kv_heads) {
    ModelConfig config;
    config.n_heads = n_heads;
    config.n_kv_heads = n_kv_heads;
    config.head_dim = 64;
    return config;
}

AttentionTasks planned(const ModelConfig& config, std::vector<TaskRun> runs, int n_shares) {
    AttentionTasks tasks(config);
    tasks.plan(runs, {}, n_shares);
    return tasks;
}

TaskRun run_of(int context, int n_rows, int first = 0) {
    return {.layout = {.context = context}, .first_row = context, .n_rows = n_rows, .first = first};
}

// Columns times positions that a share computes.
int work_of(const AttentionTasks& tasks, int share) {
    int work = 0;
    const ShareBorder end = tasks.share_end(share);
    for (ShareBorder at = tasks.share_begin(share);
         at.task < end.task || (at.task == end.task && at.chunk < end.chunk);) {
        const ColumnBlock& block = tasks.block(at.task);
        work += block.n_columns * tasks.chunk(block, at.chunk).count;
        at = at.chunk + 1 < block.n_chunks ? ShareBorder{at.task, at.chunk + 1}
                                           : ShareBorder{at.task + 1, 0};
    }
    return work;
}

TEST(AttentionTasks, HaveEveryColumnOnce) {
    for (const auto& [n_heads, n_kv_heads] : {std::pair{9, 3}, {8, 1}, {32, 8}, {5, 5}}) {
        const ModelConfig config = config_of(n_heads, n_kv_heads);
        for (const int context : {0, 16, 700}) {
            for (const int n_rows : {1, 2, 5, 16, 40}) {
                for (const int n_shares : {1, 2, 3, 16}) {
                    const AttentionTasks tasks = planned(
                        config, {run_of(context, n_rows), run_of(300, 3, n_rows)}, n_shares);
                    std::vector<std::vector<int>> n_found(2);
                    for (int task = 0; task < tasks.n_tasks(); ++task) {
                        const ColumnBlock& block = tasks.block(task);
                        ASSERT_LE(block.n_columns, kMaxAttentionColumns);
                        auto& found = n_found[static_cast<std::size_t>(block.run)];
                        found.resize(static_cast<std::size_t>(tasks.run(block).n_rows * n_heads));
                        for (int c = 0; c < block.n_columns; ++c) {
                            ++found.at(static_cast<std::size_t>((block.first + c) * n_kv_heads +
                                                                tasks.kv_head(task)));
                        }
                    }
                    for (const auto& found : n_found) {
                        EXPECT_TRUE(std::ranges::all_of(found, [](int n) { return n == 1; }))
                            << concat(n_heads, " heads, ", n_kv_heads, " KV heads, ", n_rows,
                                      " rows after ", context, ", ", n_shares, " shares");
                    }
                }
            }
        }
    }
}

// Three KV heads of one chunk have no even halves unless their columns are divided.
TEST(AttentionTasks, DivideTheColumnsOfAFewChunks) {
    const ModelConfig config = config_of(9, 3);
    for (const int n_rows : {8, 16}) {
        const AttentionTasks tasks = planned(config, {run_of(16, n_rows)}, 2);
        EXPECT_EQ(work_of(tasks, 0), work_of(tasks, 1)) << n_rows << " rows";
    }
}

TEST(AttentionTasks, KeepTheColumnsOfManyChunksTogether) {
    const ModelConfig config = config_of(9, 3);
    EXPECT_EQ(planned(config, {run_of(4000, 16)}, 2).n_tasks(), 3);
    EXPECT_EQ(planned(config, {run_of(16, 16)}, 1).n_tasks(), 3) << "one thread shares nothing";
    EXPECT_EQ(planned(config, {run_of(16, 1)}, 2).n_tasks(), 3) << "columns that share reads";
}

}  // namespace
}  // namespace knap::test::attention_tasks_test
