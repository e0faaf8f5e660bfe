// Trees, branches and replays, compared with a separate run of every path that they contain.
//
// Our kernel sums in the same order when a row's keys have the same indices modulo 16, within the
// same chunk of 256. Results are then bit-identical, as they always are for trees at full
// attention. Elsewhere only the order of sums differs.
#include <algorithm>
#include <random>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "kernels/matmul/matmul.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/naive_layout.h"
#include "support/path_case.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::test::layouts_test {
namespace {

using Kind = AttentionLayout::Kind;
using Row = std::vector<float>;
using Rows = std::vector<Row>;

// Full, skipped and windowed modules.
ModulePlan mixed_plan(int n_layers) {
    ModulePlan plan(n_layers);
    plan.set(0, Module::attention, Level::windowed(16, 64));
    plan.set(1, Module::attention, Level::skip);
    plan.set(2, Module::attention, Level::windowed(0, 33));
    plan.set(2, Module::mlp, Level::skip);
    return plan;
}

// The tokens of a node's path, and whether they are consecutive in the cache.
struct Path {
    Path(std::span<const int> parents, std::span<const Token> nodes, int node) {
        for (int k = node; k >= 0; k = parents[static_cast<std::size_t>(k)]) {
            tokens.insert(tokens.begin(), nodes[static_cast<std::size_t>(k)]);
            is_dense = is_dense && parents[static_cast<std::size_t>(k)] == k - 1;
        }
    }
    std::vector<Token> tokens;
    bool is_dense = true;
};

class Layouts : public ::testing::TestWithParam<std::tuple<PathCase, const char*>> {
  protected:
    static constexpr int kContext = 272;  // a multiple of 16, early in a chunk

    explicit Layouts(Kernels kernels = Kernels::ggml)
        : path_(std::get<PathCase>(GetParam())),
          type_(std::get<const char*>(GetParam())),
          model_(tiny_model(path_.shape, type_),
                 kernels == Kernels::ggml ? Repack::off : Repack::automatic,
                 /*n_threads=*/1,
                 kernels),
          rig_(model_, path_.options(1024)),
          plan_(mixed_plan(model_.config.n_layers)),
          text_(random_tokens(kContext + 64, model_.config.n_vocab, 1)) {
        rig_.feed(std::span(text_).first(kContext));
    }

    std::vector<Token> tokens(int n) const { return random_tokens(n, model_.config.n_vocab, 4); }

    // Runs tokens that follow the context one after the other.
    Rows run_chain(std::span<const Token> chain) {
        return rig_.run({.tokens = chain, .plan = &plan_, .first_row = kContext});
    }
    // The largest allowed difference between two results of a row, for logits with a spread of
    // about 1. It is 0 when the order of sums is the same and the kernels of the weights are
    // batch-invariant. Otherwise most of it comes from activations that round to another 8-bit
    // number (Q8_0).
    float bound(bool is_same_order) const {
        if (type_ == "F32") {
            return path_.is_int8() ? 0.1f : 0.005f;
        }
        return is_same_order && path_.path != AttentionPath::flash ? 0.0f : 0.25f;
    }

    PathCase path_;
    std::string_view type_;
    LoadedModel model_;
    ForwardRig rig_;
    ModulePlan plan_;
    std::vector<Token> text_;
};

// ggml's products have the same bits at any number of rows, but not those of routers, in F32.
class KernelTrees : public Layouts {
  protected:
    KernelTrees() : Layouts(has_experts() ? Kernels::automatic : Kernels::ggml) {}

    void SetUp() override {
        if (has_experts() && !has_fast_matmul()) {
            GTEST_SKIP() << "no kernels of ours on this machine";
        }
    }

    static bool has_experts() {
        return find_shape(std::get<PathCase>(GetParam()).shape).experts.n_experts > 0;
    }
};

TEST_P(Layouts, TreeRowsEqualChainsOfTheirPaths) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, -1, 7};
    const auto nodes = tokens(9);
    const AttentionLayout tree{.kind = Kind::tree, .parents = parents};
    const Rows rows =
        rig_.run({.tokens = nodes, .plan = &plan_, .first_row = kContext, .layout = tree});
    for (int node = 0; node < 9; ++node) {
        const Path path(parents, nodes, node);
        EXPECT_LE(
            max_abs_difference(rows[static_cast<std::size_t>(node)], run_chain(path.tokens).back()),
            bound(path.is_dense))
            << "node " << node;
    }
}

TEST_P(Layouts, TreeInTwoPassesEqualsOne) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, -1, 7};
    const auto nodes = tokens(9);
    const auto run = [&](int first, int count) {
        return rig_.run({.tokens = std::span(nodes).subspan(static_cast<std::size_t>(first),
                                                            static_cast<std::size_t>(count)),
                         .plan = &plan_,
                         .first_row = kContext + first,
                         .layout = {.kind = Kind::tree,
                                    .parents = std::span(parents).first(
                                        static_cast<std::size_t>(first + count))}});
    };
    const Rows whole = run(0, 9);
    run(0, 4);
    const Rows rest = run(4, 5);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(rest[i], whole[i + 4]) << "node " << i + 4;
    }
}

// At full attention our kernel reads the rows that a row attends to in the order of its path,
// wherever they are in the cache. Contexts end around a chunk boundary. Some trees are small enough
// to be split along the context and some are not; some are larger than a chunk.
TEST_P(KernelTrees, RowsAreBitIdenticalToTheirPaths) {
    std::mt19937 random(3);
    for (const int context : {260, 256, 255, 250, 1, 0}) {
        for (const int n_nodes : {2, 9, 40, 300}) {
            SCOPED_TRACE(concat("context ", context, ", ", n_nodes, " nodes"));
            rig_.cache.truncate(context);  // the rows above it are lost
            std::vector<int> parents;
            for (int k = 0; k < n_nodes; ++k) {
                parents.push_back(random_between(random, std::max(-1, k - 6), k - 1));
            }
            parents.back() = -1;  // its cache row is far from its position
            const auto nodes = tokens(n_nodes);
            const Rows rows = rig_.run({.tokens = nodes,
                                        .first_row = context,
                                        .layout = {.kind = Kind::tree, .parents = parents}});
            for (int node = n_nodes - 1; node >= 0; node -= 1 + n_nodes / 12) {
                const Path path(parents, nodes, node);
                const Rows chain = rig_.run({.tokens = path.tokens, .first_row = context});
                EXPECT_EQ(rows[static_cast<std::size_t>(node)], chain.back()) << "node " << node;
            }
        }
    }
}

TEST_P(Layouts, BranchRowsEqualSeparateRuns) {
    for (const int branch_rows : {16, 5}) {
        const int n_rows = 3 * branch_rows;
        const auto all = tokens(n_rows);
        const Rows rows =
            rig_.run({.tokens = all,
                      .plan = &plan_,
                      .first_row = kContext,
                      .layout = {.kind = Kind::branches, .branch_rows = branch_rows}});
        for (int first = 0; first < n_rows; first += branch_rows) {
            const Rows alone = run_chain(std::span(all).subspan(
                static_cast<std::size_t>(first), static_cast<std::size_t>(branch_rows)));
            for (std::size_t i = 0; i < alone.size(); ++i) {
                const Row& row = rows[static_cast<std::size_t>(first) + i];
                EXPECT_LE(max_abs_difference(row, alone[i]), bound(branch_rows % 16 == 0))
                    << "branch from " << first << ", row " << i;
            }
        }
    }
}

TEST_P(Layouts, ReplayRowsEqualFirstDrafts) {
    for (const int n_rows : {16, 7}) {
        rig_.cache.truncate(kContext);
        Rows drafts;
        for (int i = 0; i < n_rows; ++i) {
            const auto token = std::span(text_).subspan(static_cast<std::size_t>(kContext + i), 1);
            drafts.push_back(
                rig_.run({.tokens = token, .plan = &plan_, .first_row = kContext + i})[0]);
            rig_.feed(token);  // the whole model's row replaces the draft's
        }
        const Rows replayed = rig_.run(
            {.tokens = std::span(text_).subspan(kContext, static_cast<std::size_t>(n_rows)),
             .plan = &plan_,
             .first_row = kContext + n_rows,
             .layout = {.kind = Kind::replay, .context = kContext}});
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            EXPECT_LE(max_abs_difference(replayed[i], drafts[i]), bound(n_rows % 16 == 0))
                << n_rows << " rows, row " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         Layouts,
                         ::testing::Combine(all_path_cases(), ::testing::Values("F32", "Q8_0")));

INSTANTIATE_TEST_SUITE_P(
    Paths,
    KernelTrees,
    ::testing::Combine(
        ::testing::Values(PathCase{"tiny-llama", AttentionPath::kernel},
                          PathCase{"tiny-llama", AttentionPath::kernel, CacheType::q8_0},
                          PathCase{"tiny-qwen3", AttentionPath::kernel},
                          PathCase{"tiny-mha", AttentionPath::kernel},
                          PathCase{"tiny-gemma3", AttentionPath::kernel},
                          PathCase{"tiny-gemma2", AttentionPath::kernel, CacheType::q8_0},
                          PathCase{"tiny-olmo2", AttentionPath::kernel},
                          PathCase{"tiny-gpt-oss", AttentionPath::kernel}),
        ::testing::Values("Q8_0")));

}  // namespace
}  // namespace knap::test::layouts_test
