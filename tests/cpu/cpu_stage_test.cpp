// Passes of our own operators on our own threads, compared with the same operators as nodes of a
// ggml graph: the same bits, whatever is asked for.
#include <algorithm>
#include <functional>
#include <numeric>
#include <ostream>

#include <gtest/gtest.h>

#include "cpu/cpu_weights.h"
#include "forward/plan_text.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::cpu_stage_test {
namespace {

using Kind = AttentionLayout::Kind;

constexpr int kContext = 300;  // more than a chunk
constexpr int kRows = 9;

struct Outcome {
    std::vector<float> logits;
    std::vector<Token> choices;
    std::vector<std::vector<float>> captures;
    std::vector<std::byte> rows;  // of the cache

    bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
    *out << outcome.logits.size() << " logits, " << outcome.captures.size() << " captures, "
         << outcome.rows.size() << " bytes of rows";
}

struct Case {
    const char* shape;
    const char* type;
    CacheType cache = CacheType::f16;
    int n_threads = 1;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << '/' << (c.cache == CacheType::f16 ? "f16" : "q8_0") << '/'
         << c.n_threads;
}

struct Side {
    Side(const Case& c, bool uses_graphs, int n_threads)
        : model(tiny_model(c.shape, c.type), Repack::automatic, n_threads, Kernels::automatic),
          rig(model,
              {.type_k = c.cache,
               .type_v = c.cache,
               .path = AttentionPath::kernel,
               .uses_graphs = uses_graphs}) {
        rig.feed(random_tokens(kContext, model.config.n_vocab, 1));
    }

    Outcome run(ForwardRequest request) {
        request.first_row = kContext;
        const ForwardResult result = rig.forward.run(request);
        EXPECT_TRUE(result.is_complete);
        Outcome outcome{.logits = {result.logits.begin(), result.logits.end()},
                        .choices = {result.choices.begin(), result.choices.end()}};
        for (const auto& capture : result.captures) {
            outcome.captures.emplace_back(capture.begin(), capture.end());
        }
        rig.cache.commit(kContext + result.n_rows);
        outcome.rows = rig.cache_bytes();
        rig.cache.truncate(kContext);
        return outcome;
    }

    LoadedModel model;
    ForwardRig rig;
};

class CpuStage : public ::testing::TestWithParam<Case> {
  protected:
    CpuStage()
        : graphs_(GetParam(), true, 1),
          own_(GetParam(), false, GetParam().n_threads),
          tokens_(random_tokens(kRows, own_.model.config.n_vocab, 2)),
          all_rows_(kRows) {
        std::iota(all_rows_.begin(), all_rows_.end(), 0);
    }

    int n_layers() const { return own_.model.config.n_layers; }

    void expect_same(const ForwardRequest& request, std::string_view what) {
        EXPECT_EQ(own_.run(request), graphs_.run(request)) << what;
    }

    Side graphs_;
    Side own_;
    std::vector<Token> tokens_;
    std::vector<int> all_rows_;
};

// Otherwise the suite would compare graphs with graphs.
TEST_P(CpuStage, CoversTheModel) {
    EXPECT_TRUE(has_cpu_weights(own_.model.config, own_.model.weights->tensors(),
                                own_.model.layers.first()));
}

TEST_P(CpuStage, ComputesPromptsBitForBit) {
    EXPECT_EQ(own_.rig.cache_bytes(), graphs_.rig.cache_bytes());
}

TEST_P(CpuStage, ComputesRowsBitForBit) {
    for (const int n_rows : {1, 2, 5, kRows}) {
        const auto n = static_cast<std::size_t>(n_rows);
        expect_same(
            {.tokens = std::span(tokens_).first(n), .logit_rows = std::span(all_rows_).first(n)},
            "all logits");
        expect_same({.tokens = std::span(tokens_).first(n),
                     .logit_rows = std::span(all_rows_).subspan(n - 1, 1)},
                    "the last logits");
        expect_same({.tokens = std::span(tokens_).first(n)}, "no logits");
        expect_same({.tokens = std::span(tokens_).first(n),
                     .logit_rows = std::span(all_rows_).first(n),
                     .chooses = true},
                    "choices");
    }
}

TEST_P(CpuStage, ListsTheBestTokensOfRows) {
    ASSERT_GE(own_.rig.forward.max_best(), 2);
    for (const int n_rows : {1, kRows}) {
        ForwardRequest request{
            .tokens = std::span(tokens_).first(static_cast<std::size_t>(n_rows)),
            .first_row = kContext,
            .logit_rows = std::span(all_rows_).first(static_cast<std::size_t>(n_rows))};
        const std::vector<float> logits = own_.run(request).logits;
        request.n_best = 2;
        const ForwardResult result = own_.rig.forward.run(request);
        EXPECT_TRUE(result.logits.empty());
        ASSERT_EQ(result.best.n_rows(), static_cast<std::size_t>(n_rows));
        const std::size_t n_vocab = logits.size() / static_cast<std::size_t>(n_rows);
        for (std::size_t i = 0; i < result.best.n_rows(); ++i) {
            std::vector<RankKey> best(result.best.row(i).begin(), result.best.row(i).end());
            std::ranges::sort(best);
            Ranking ranking;
            ranking.take_largest(std::span(logits).subspan(i * n_vocab, n_vocab), 2);
            ranking.sort();
            ASSERT_GE(best.size(), ranking.keys().size());
            best.resize(ranking.keys().size());
            EXPECT_EQ(best, ranking.keys()) << "row " << i << " of " << n_rows;
        }
    }
}

TEST_P(CpuStage, ComputesPlansBitForBit) {
    for (const char* text : {"a0=skip", "m1=skip", "l0-1=skip", "a=w4+16", "a0=w4+16,a1=w2+40",
                             "exit=1", "a=skip", "head=reduced", "m=e1", "m0=e2,m1=skip"}) {
        const ModulePlan plan = parse_plan(text, n_layers());
        expect_same({.tokens = tokens_, .plan = &plan, .logit_rows = all_rows_}, text);
        const std::vector<int> last{kRows - 1};
        expect_same({.tokens = tokens_, .plan = &plan, .logit_rows = last}, text);
    }
}

TEST_P(CpuStage, CapturesAndResumesBitForBit) {
    std::vector<int> captures(static_cast<std::size_t>(2 * n_layers() + 1));
    std::iota(captures.begin(), captures.end(), 0);
    expect_same({.tokens = tokens_, .captures = captures}, "all captures");
    expect_same({.tokens = tokens_, .captures = captures, .logit_rows = all_rows_}, "and logits");
    const std::vector<int> one{2};
    const std::vector<int> last{kRows - 1};
    expect_same({.tokens = tokens_, .exit_layer = 1, .captures = one}, "the first layer");
    const Outcome begun = own_.run({.tokens = tokens_, .exit_layer = 1, .captures = one});
    expect_same({.hidden = begun.captures.front(), .entry_layer = 1, .logit_rows = last},
                "the rest");
}

TEST_P(CpuStage, ComputesLayoutsBitForBit) {
    const std::vector<int> parents{-1, 0, 0, 1, 2, 3, 3, -1, 7};
    expect_same({.tokens = tokens_,
                 .layout = {.kind = Kind::tree, .context = kContext, .parents = parents},
                 .logit_rows = all_rows_},
                "a tree");
    const std::vector<int> whole{-1, 0, 1, 2, 3, 4, 5, 6, 7};
    expect_same({.tokens = tokens_,
                 .layout = {.kind = Kind::tree, .context = kContext, .parents = whole},
                 .logit_rows = all_rows_},
                "a tree that is a chain");
    expect_same({.tokens = tokens_,
                 .layout = {.kind = Kind::branches, .context = kContext, .branch_rows = 3},
                 .logit_rows = all_rows_},
                "branches");
    expect_same({.tokens = tokens_,
                 .layout = {.kind = Kind::replay, .context = kContext - kRows},
                 .logit_rows = all_rows_},
                "a replay");
}

TEST_P(CpuStage, EndsCancelledPasses) {
    int n_polls = 0;
    const std::function<bool()> is_cancelled = [&] { return ++n_polls > 2; };
    own_.rig.forward.set_cancel(&is_cancelled);
    EXPECT_FALSE(own_.rig.forward.run({.tokens = tokens_, .first_row = kContext}).is_complete);
    EXPECT_EQ(n_polls, 3);
    own_.rig.forward.set_cancel(nullptr);
    expect_same({.tokens = tokens_, .logit_rows = all_rows_}, "after it");
}

INSTANTIATE_TEST_SUITE_P(Models,
                         CpuStage,
                         ::testing::Values(Case{"tiny-llama", "Q8_0"},
                                           Case{"tiny-llama", "Q4_1", CacheType::q8_0, 3},
                                           Case{"tiny-qwen2", "Q8_0", CacheType::f16, 2},
                                           Case{"tiny-qwen3", "Q8_0", CacheType::f16, 4},
                                           Case{"tiny-mha", "Q4_1", CacheType::f16, 2},
                                           Case{"small-llama", "Q4_K", CacheType::f16, 2},
                                           Case{"small-llama", "Q6_K", CacheType::q8_0, 5},
                                           Case{"small-gemma3", "Q4_K", CacheType::q8_0, 2},
                                           Case{"small-qwen3moe", "Q4_K", CacheType::q8_0, 3},
                                           Case{"tiny-gpt-oss", "MXFP4", CacheType::f16, 3},
                                           Case{"tiny-mixtral", "F16", CacheType::f16, 2}));

// With both types of cache, on different numbers of threads.
std::vector<Case> every_shape() {
    std::vector<Case> cases;
    for (const char* shape : shapes_named("tiny-")) {
        const int n_threads = 1 + static_cast<int>(cases.size() / 2 % 4);
        cases.push_back({shape, "Q8_0", CacheType::f16, n_threads});
        cases.push_back({shape, "Q4_1", CacheType::q8_0, n_threads + 1});
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Architectures, CpuStage, ::testing::ValuesIn(every_shape()));

}  // namespace
}  // namespace knap::test::cpu_stage_test
