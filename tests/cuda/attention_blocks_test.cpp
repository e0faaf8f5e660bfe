// Plans of attention for the CUDA kernels, against the rows that a layout shows.
#include "cuda/attention_blocks.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace knap::test::cuda_attention_blocks_test {
namespace {

using For = CudaAttentionBlocks::For;
using Kind = AttentionLayout::Kind;

ModelConfig config(int n_heads) {
    ModelConfig config;
    config.n_heads = n_heads;
    config.n_kv_heads = 1;
    config.head_dim = 64;
    return config;
}

// The row of the sequence at a position, as the kernels find it.
int row_at(const CudaAttentionBlocks& plan, const CudaBlock& block, int position) {
    const auto runs = plan.runs().subspan(static_cast<std::size_t>(block.first_run),
                                          static_cast<std::size_t>(block.n_runs));
    const auto after = std::ranges::upper_bound(runs, position, {}, &CudaRun::position);
    const CudaRun& run = *(after - 1);
    return run.row + position - run.position;
}

int first_seen(const CudaAttentionBlocks& plan, int row) {
    return plan.first_seen().empty() ? 0 : plan.first_seen()[static_cast<std::size_t>(row)];
}

// What a row sees according to the plan: rows of the sequence by position. Every part of its
// context must be in exactly one block.
std::vector<int> seen_by(const CudaAttentionBlocks& plan, int row) {
    const int begin = first_seen(plan, row);
    const int n_seen = plan.n_seen()[static_cast<std::size_t>(row)];
    std::map<int, int> rows;
    int n_parts = 0;
    for (const CudaBlock& block : plan.blocks()) {
        if (row < block.first_row || row >= block.first_row + block.n_rows) {
            continue;
        }
        n_parts += block.end_part - block.first_part;
        for (int part = block.first_part; part < block.end_part; ++part) {
            for (int at = std::max(begin, part_begin(part));
                 at < std::min(part_begin(part + 1), n_seen); ++at) {
                EXPECT_TRUE(rows.emplace(at, row_at(plan, block, at)).second);
            }
        }
    }
    EXPECT_TRUE(n_parts == 1 || plan.merges());
    std::vector<int> seen;
    for (const auto& [position, at] : rows) {
        EXPECT_EQ(position, begin + static_cast<int>(seen.size()));
        seen.push_back(at);
    }
    EXPECT_EQ(static_cast<int>(seen.size()), n_seen - begin);
    return seen;
}

std::vector<int> expected(const TaskRun& run, const AttentionScope& scope, int row) {
    std::vector<int> rows;
    for_each_visible_run(run.layout, scope, run.first_row, row, [&](int begin, int end) {
        for (int at = begin; at < end; ++at) {
            rows.push_back(at);
        }
    });
    std::ranges::sort(rows);
    return rows;
}

void check(const TaskRun& run, const AttentionScope& scope, For kernel, int n_processors) {
    CudaAttentionBlocks plan(config(4), n_processors);
    const std::vector<int> first_pages{0};
    plan.plan({&run, 1}, first_pages, scope, kernel);
    for (int row = 0; row < run.n_rows; ++row) {
        EXPECT_EQ(seen_by(plan, row), expected(run, scope, row)) << "row " << row;
    }
    for (const CudaBlock& block : plan.blocks()) {
        EXPECT_LE(kernel == For::step ? block.n_rows * 4 : 0, max_cuda_columns(64));
        // Rows of the pass are stored by whoever may see them.
        for (int row = block.first_row; row < block.first_row + block.n_rows; ++row) {
            const std::vector<int> seen = expected(run, scope, row);
            for (std::size_t i = 0; i < seen.size(); ++i) {
                const int at = first_seen(plan, row) + static_cast<int>(i);
                EXPECT_TRUE(seen[i] < run.first_row || at >= block.first_new);
            }
        }
    }
}

void check(const TaskRun& run, const AttentionScope& scope = {}) {
    for (const For kernel : {For::step, For::prefill}) {
        for (const int n_processors : {1, 4, 132}) {
            check(run, scope, kernel, n_processors);
        }
    }
}

TEST(CudaAttentionBlocks, ShowEveryRowWhatItSees) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    for (const int context : {0, 7, 255, 256, 300, 4100, 5000}) {
        check({.layout = {.context = context}, .first_row = context, .n_rows = 1});
        check({.layout = {.context = context}, .first_row = context, .n_rows = 16});
        check({.layout = {.kind = Kind::tree, .context = context, .parents = parents},
               .first_row = context,
               .n_rows = 8});
        check({.layout = {.kind = Kind::branches, .context = context, .branch_rows = 2},
               .first_row = context,
               .n_rows = 8});
    }
    check({.layout = {.kind = Kind::replay, .context = 600}, .first_row = 700, .n_rows = 8});
}

TEST(CudaAttentionBlocks, NarrowToWindows) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    for (const Window& window : {Window{16, 32}, Window{4, 1000}}) {
        for (const int context : {3, 40, 300, 5000}) {
            check({.layout = {.context = context}, .first_row = context, .n_rows = 8}, {window});
            check({.layout = {.kind = Kind::tree, .context = context, .parents = parents},
                   .first_row = context,
                   .n_rows = 8},
                  {window});
        }
    }
}

// The layers' own window counts positions; with a plan's, rows see what both show.
TEST(CudaAttentionBlocks, HideWhatIsBeforeTheLayersOwnWindow) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    for (const std::optional<Window>& window :
         {std::optional<Window>{}, std::optional<Window>{{16, 32}}}) {
        for (const int own_window : {1, 5, 24, 300, 4096}) {
            for (const int context : {0, 40, 250, 255, 300, 5000}) {
                const AttentionScope scope{window, own_window};
                SCOPED_TRACE(testing::Message() << own_window << " of " << context);
                check({.layout = {.context = context}, .first_row = context, .n_rows = 16}, scope);
                check({.layout = {.kind = Kind::tree, .context = context, .parents = parents},
                       .first_row = context,
                       .n_rows = 8},
                      scope);
                check({.layout = {.kind = Kind::branches, .context = context, .branch_rows = 4},
                       .first_row = context,
                       .n_rows = 8},
                      scope);
            }
            check({.layout = {.kind = Kind::replay, .context = 600}, .first_row = 700, .n_rows = 8},
                  {window, own_window});
        }
    }
}

TEST(CudaAttentionBlocks, ReadNoPartsThatAWindowHides) {
    const TaskRun run{.layout = {.context = 5000}, .first_row = 5000, .n_rows = 8};
    const std::vector<int> first_pages{0};
    for (const For kernel : {For::step, For::prefill}) {
        CudaAttentionBlocks plan(config(4), 1);
        plan.plan({&run, 1}, first_pages, {{}, 600}, kernel);
        ASSERT_EQ(plan.blocks().size(), 1U);
        EXPECT_EQ(plan.blocks().front().first_part, part_of(4401));
        EXPECT_EQ(plan.blocks().front().end_part, part_of(5007) + 1);
        EXPECT_TRUE(plan.merges());
        plan.plan({&run, 1}, first_pages, {{}, 300}, kernel);
        EXPECT_FALSE(plan.merges()) << "all rows see one part";
    }
}

TEST(CudaAttentionBlocks, MoveAWindowWithTheStepsOfAChain) {
    const TaskRun run{.layout = {.context = 250}, .first_row = 250, .n_rows = 1};
    const std::vector<int> first_pages{0};
    CudaAttentionBlocks plan(config(4), 1);
    plan.plan({&run, 1}, first_pages, {{}, 248}, For::step, 4);
    EXPECT_EQ(std::vector<int>(plan.first_seen().begin(), plan.first_seen().end()),
              (std::vector<int>{3, 4, 5, 6}));
    // Of a plan's window, what the layers hide are sinks first.
    plan.plan({&run, 1}, first_pages, {Window{2, 8}, 10}, For::step, 4);
    EXPECT_EQ(std::vector<int>(plan.first_seen().begin(), plan.first_seen().end()),
              (std::vector<int>{2, 2, 3, 4}));
    plan.plan({&run, 1}, first_pages, {{}, 300}, For::step, 8);
    EXPECT_TRUE(plan.merges()) << "later steps see a second part";
}

TEST(CudaAttentionBlocks, RowsOfATreeShareTheTextBeforeIt) {
    const std::vector<int> parents{-1, -1, -1, -1};
    const TaskRun run{.layout = {.kind = Kind::tree, .context = 5000, .parents = parents},
                      .first_row = 5000,
                      .n_rows = 4};
    CudaAttentionBlocks plan(config(4), 1);
    const std::vector<int> first_pages{0};
    plan.plan({&run, 1}, first_pages, {}, For::step);
    EXPECT_EQ(plan.blocks().front().n_rows, 4);
    EXPECT_EQ(plan.blocks().front().end_part, 17);  // 16 of 256 rows, one of 512
    EXPECT_TRUE(plan.merges());
}

TEST(CudaAttentionBlocks, HaveFewRowsWhileProcessorsAreFree) {
    const TaskRun run{.layout = {.context = 300}, .first_row = 300, .n_rows = 8};
    const std::vector<int> first_pages{0};
    // Two parts of the context.
    for (const auto& [n_processors, n_rows] : {std::pair{16, 1}, {15, 2}, {4, 4}, {3, 8}, {1, 8}}) {
        CudaAttentionBlocks plan(config(4), n_processors);
        plan.plan({&run, 1}, first_pages, {}, For::step);
        EXPECT_EQ(plan.blocks().front().n_rows, n_rows) << n_processors << " processors";
    }
}

TEST(CudaParts, CoverAllPositionsOnce) {
    int end = 0;
    for (int part = 0; part < 200; ++part) {
        EXPECT_EQ(part_begin(part), end);
        end = part_begin(part + 1);
        EXPECT_GT(end, part_begin(part));
        EXPECT_EQ(part_of(part_begin(part)), part);
        EXPECT_EQ(part_of(end - 1), part);
        EXPECT_EQ(count_parts(end), part + 1);
        EXPECT_EQ(count_parts(end - 1), part + 1);
        EXPECT_EQ(count_parts(end + 1), part + 2);
    }
    EXPECT_EQ(count_parts(0), 0);
    EXPECT_EQ(count_parts(1), 1);
}

}  // namespace
}  // namespace knap::test::cuda_attention_blocks_test
