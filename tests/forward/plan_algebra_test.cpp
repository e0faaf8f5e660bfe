// Plans as algebra: the full plan is the plain pass, a skipped module is an identity, passes may
// end and begin between any two layers, and captures show the stream without changing it.
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/path_case.h"
#include "support/tiny_model.h"

namespace knap::test::plan_algebra_test {
namespace {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

constexpr int kContext = 70;

Row copy(std::span<const float> values) {
    return {values.begin(), values.end()};
}

std::vector<int> numbers(int n) {
    std::vector<int> out(static_cast<std::size_t>(n));
    std::iota(out.begin(), out.end(), 0);
    return out;
}

class PlanAlgebra : public ::testing::TestWithParam<PathCase> {
  protected:
    PlanAlgebra()
        : model_(tiny_model(GetParam().shape, "Q8_0")),
          rig_(model_, GetParam().options(512)),
          tokens_(random_tokens(9, model_.config.n_vocab, 3)) {
        rig_.feed(random_tokens(kContext, model_.config.n_vocab, 1));
    }

    int n_layers() const { return model_.config.n_layers; }
    std::size_t n_embd() const { return static_cast<std::size_t>(model_.config.n_embd); }
    // The streams after 0 to 2L modules, of all rows.
    Rows capture_all(const ModulePlan& plan) {
        const auto captures = numbers(2 * n_layers() + 1);
        const ForwardResult result = rig_.forward.run(
            {.tokens = tokens_, .plan = &plan, .first_row = kContext, .captures = captures});
        Rows streams;
        for (const auto stream : result.captures) {
            streams.push_back(copy(stream));
        }
        return streams;
    }
    Rows run(const ModulePlan* plan) {
        return rig_.run({.tokens = tokens_, .plan = plan, .first_row = kContext});
    }
    Rows resume(const Row& stream, int layer, const ModulePlan* plan = nullptr) {
        return rig_.run(
            {.hidden = stream, .plan = plan, .first_row = kContext, .entry_layer = layer});
    }

    LoadedModel model_;
    ForwardRig rig_;
    std::vector<Token> tokens_;
};

TEST_P(PlanAlgebra, FullPlanEqualsThePlainPass) {
    const ModulePlan full(n_layers());
    EXPECT_EQ(run(&full), run(nullptr));
}

TEST_P(PlanAlgebra, SkippedMlpEqualsTheLayersAfterItOnTheStreamBeforeIt) {
    const Rows streams = capture_all(ModulePlan(n_layers()));
    for (int layer = 0; layer < n_layers(); ++layer) {
        ModulePlan plan(n_layers());
        plan.set(layer, Module::mlp, Level::skip);
        const Rows by_hand = resume(streams[static_cast<std::size_t>(2 * layer + 1)], layer + 1);
        EXPECT_EQ(run(&plan), by_hand) << "layer " << layer;
    }
}

TEST_P(PlanAlgebra, SkippedAttentionLeavesTheStreamAndTheCacheAlone) {
    const Rows streams = capture_all(ModulePlan(n_layers()));
    for (int layer = 0; layer < n_layers(); ++layer) {
        const auto before = static_cast<std::size_t>(2 * layer);
        ModulePlan plan(n_layers());
        plan.set(layer, Module::attention, Level::skip);
        std::vector<std::byte> rows_before(rig_.cache.saved_row_bytes() * (kContext + 9));
        std::vector<std::byte> rows_after(rows_before.size());
        rig_.cache.read_rows(layer, kContext + 9, rows_before.data());
        tokens_[4] += 1;  // the layer would write other rows than the cache holds
        const Rows skipping = capture_all(plan);
        rig_.cache.read_rows(layer, kContext + 9, rows_after.data());
        EXPECT_EQ(rows_after, rows_before) << "layer " << layer;
        tokens_[4] -= 1;
        const Rows again = capture_all(plan);
        EXPECT_EQ(again[before], streams[before]);
        EXPECT_EQ(again[before + 1], again[before]);
        EXPECT_NE(again[before + 2], again[before + 1]);
        EXPECT_EQ(run(&plan), resume(again[before + 2], layer + 1));
    }
}

TEST_P(PlanAlgebra, EverythingSkippedIsTheHeadOnEmbeddings) {
    ModulePlan nothing(n_layers());
    for (int layer = 0; layer < n_layers(); ++layer) {
        nothing.set(layer, Module::attention, Level::skip);
        nothing.set(layer, Module::mlp, Level::skip);
    }
    const Row embeddings = capture_all(nothing)[0];
    EXPECT_EQ(run(&nothing), resume(embeddings, n_layers()));
    EXPECT_EQ(run(&nothing), rig_.run({.tokens = tokens_, .first_row = kContext, .exit_layer = 0}));
    for (const Row& stream : capture_all(nothing)) {
        EXPECT_EQ(stream, embeddings);
    }
    EXPECT_TRUE(
        rig_.forward.run({.tokens = tokens_, .plan = &nothing, .first_row = kContext}).is_complete)
        << "a pass that asks for nothing";
}

TEST_P(PlanAlgebra, SkippedTailEqualsAnExit) {
    for (int exit = 0; exit <= n_layers(); ++exit) {
        ModulePlan plan(n_layers());
        for (int layer = exit; layer < n_layers(); ++layer) {
            plan.set(layer, Module::attention, Level::skip);
            plan.set(layer, Module::mlp, Level::skip);
        }
        EXPECT_EQ(run(&plan),
                  rig_.run({.tokens = tokens_, .first_row = kContext, .exit_layer = exit}));
    }
}

TEST_P(PlanAlgebra, SelectedLogitRowsEqualThoseOfAllRowsWhateverIsSkipped) {
    const std::vector<int> chosen{1, 5, 8};
    for (int n_skipped = 0; n_skipped <= 2 * n_layers(); ++n_skipped) {
        ModulePlan plan(n_layers());
        for (int i = 2 * n_layers() - n_skipped; i < 2 * n_layers(); ++i) {
            plan.set(i / 2, i % 2 == 0 ? Module::attention : Module::mlp, Level::skip);
        }
        const Rows all = run(&plan);
        // Captures early, late and not at all: unneeded rows are dropped at a different point each
        // time.
        for (const std::vector<int>& captures :
             {std::vector<int>{}, {0}, {1, 2 * n_layers() - 1}, {2 * n_layers()}}) {
            const ForwardResult result = rig_.forward.run({.tokens = tokens_,
                                                           .plan = &plan,
                                                           .first_row = kContext,
                                                           .captures = captures,
                                                           .logit_rows = chosen});
            const auto n_vocab = static_cast<std::size_t>(model_.config.n_vocab);
            for (std::size_t i = 0; i < chosen.size(); ++i) {
                EXPECT_EQ(copy(result.logits.subspan(i * n_vocab, n_vocab)),
                          all[static_cast<std::size_t>(chosen[i])])
                    << n_skipped << " skipped, " << captures.size() << " captures";
            }
        }
    }
}

TEST_P(PlanAlgebra, CapturesHoldAllRowsWhicheverHaveLogits) {
    ModulePlan plan(n_layers());
    plan.set(1, Module::attention, Level::skip);
    plan.set(2, Module::attention, Level::windowed(16, 32));
    const Rows streams = capture_all(plan);
    const Rows logits = run(&plan);
    const auto captures = numbers(2 * n_layers() + 1);
    for (const int row : {0, 3, 8}) {
        const ForwardResult result = rig_.forward.run({.tokens = tokens_,
                                                       .plan = &plan,
                                                       .first_row = kContext,
                                                       .captures = captures,
                                                       .logit_rows = std::span(&row, 1)});
        EXPECT_EQ(copy(result.logits), logits[static_cast<std::size_t>(row)]);
        ASSERT_EQ(result.captures.size(), captures.size());
        for (std::size_t i = 0; i < captures.size(); ++i) {
            EXPECT_EQ(copy(result.captures[i]), streams[i]) << i;
        }
    }
}

TEST_P(PlanAlgebra, CapturesAtTheExitNeedNoLogits) {
    const Rows streams = capture_all(ModulePlan(n_layers()));
    const std::vector<int> captures{4};
    const ForwardResult result = rig_.forward.run(
        {.tokens = tokens_, .first_row = kContext, .exit_layer = 2, .captures = captures});
    EXPECT_TRUE(result.logits.empty());
    EXPECT_EQ(copy(result.captures[0]), streams[4]);
    // Nothing runs: the hidden rows themselves are captured.
    const std::vector<int> end{2 * n_layers()};
    const Row& last = streams.back();
    EXPECT_EQ(copy(rig_.forward
                       .run({.hidden = last,
                             .first_row = kContext,
                             .entry_layer = n_layers(),
                             .captures = end})
                       .captures[0]),
              last);
}

// Early exit: drafts run the layers below the exit row by row, and verification runs the layers
// above it for all rows.
TEST_P(PlanAlgebra, RowsFinishedAboveAnExitEqualOneWholePass) {
    constexpr int kExit = 2;
    const Rows whole = run(nullptr);
    rig_.cache.commit(kContext + 9);
    const auto whole_cache = rig_.cache_bytes();
    rig_.cache.truncate(kContext);

    const std::vector<int> captures{2 * kExit};
    Row hidden;
    for (int i = 0; i < 9; ++i) {
        const ForwardResult row =
            rig_.forward.run({.tokens = std::span(tokens_).subspan(static_cast<std::size_t>(i), 1),
                              .first_row = kContext + i,
                              .exit_layer = kExit,
                              .captures = captures});
        hidden.insert(hidden.end(), row.captures[0].begin(), row.captures[0].end());
    }
    const Rows finished = resume(hidden, kExit);
    rig_.cache.commit(kContext + 9);
    if (GetParam().path != AttentionPath::flash) {
        EXPECT_EQ(finished, whole);
        EXPECT_EQ(rig_.cache_bytes(), whole_cache);
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_LT(max_abs_difference(finished[i], whole[i]), 0.25f);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, PlanAlgebra, all_path_cases());

// The modules written out in plain loops, on float weights.
class ModulesByHand : public ::testing::Test {
  protected:
    using Vector = std::vector<double>;

    ModulesByHand() : model_(tiny_model("tiny-llama", "F32")), rig_(model_, {.capacity = 512}) {}

    static const float* data(const ggml_tensor* tensor) {
        return static_cast<const float*>(tensor->data);
    }
    Vector norm(const Vector& x, const ggml_tensor* weight) const {
        double squares = 0;
        for (const double value : x) {
            squares += value * value;
        }
        const double scale =
            1 / std::sqrt(squares / static_cast<double>(x.size()) + model_.config.rms_eps);
        Vector out;
        for (std::size_t i = 0; i < x.size(); ++i) {
            out.push_back(x[i] * scale * data(weight)[i]);
        }
        return out;
    }
    static Vector product(const ggml_tensor* weight, const Vector& x) {
        Vector out(static_cast<std::size_t>(weight->ne[1]));
        for (std::size_t o = 0; o < out.size(); ++o) {
            out[o] = std::inner_product(x.begin(), x.end(), data(weight) + o * x.size(), 0.0);
        }
        return out;
    }
    Vector after_mlp(const Vector& x, int layer) const {
        const LayerWeights& w = model_.weights->tensors().layers[static_cast<std::size_t>(layer)];
        const Vector normed = norm(x, w.ffn_norm);
        Vector hidden = product(w.ffn_gate, normed);
        const Vector up = product(w.ffn_up, normed);
        for (std::size_t i = 0; i < hidden.size(); ++i) {
            hidden[i] = hidden[i] / (1 + std::exp(-hidden[i])) * up[i];
        }
        Vector out = product(w.ffn_down, hidden);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] += x[i];
        }
        return out;
    }

    LoadedModel model_;
    ForwardRig rig_;
};

TEST_F(ModulesByHand, PlanWithoutAttentionIsMlpsAndHead) {
    ModulePlan plan(model_.config.n_layers);
    for (int layer = 0; layer < model_.config.n_layers; ++layer) {
        plan.set(layer, Module::attention, Level::skip);
    }
    plan.set(1, Module::mlp, Level::skip);
    const ModelTensors& tensors = model_.weights->tensors();
    const auto tokens = random_tokens(3, model_.config.n_vocab, 3);
    const Rows rows = rig_.run({.tokens = tokens, .plan = &plan});
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        const float* embedding =
            data(tensors.token_embd) +
            static_cast<std::size_t>(tokens[row]) * static_cast<std::size_t>(model_.config.n_embd);
        Vector stream(embedding, embedding + model_.config.n_embd);
        for (const int layer : {0, 2, 3}) {
            stream = after_mlp(stream, layer);
        }
        const Vector logits = product(tensors.output, norm(stream, tensors.output_norm));
        EXPECT_LT(max_abs_difference(rows[row], Row(logits.begin(), logits.end())), 1e-3f);
    }
}

}  // namespace
}  // namespace knap::test::plan_algebra_test
