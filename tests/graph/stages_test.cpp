// A model with layers on several devices is bit-identical to the same model on one.
#include <numeric>
#include <ostream>

#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "graph/ggml_stage.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"

namespace knap::test::stages_test {
namespace {

using Kind = AttentionLayout::Kind;

constexpr int kContext = 70;
constexpr int kRows = 8;

// The results of a pass, and the rows that it left in the cache.
struct Outcome {
    std::vector<float> logits;
    std::vector<std::vector<float>> captures;
    std::vector<std::byte> rows;

    bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
    *out << outcome.logits.size() << " logits, " << outcome.captures.size() << " captures, "
         << outcome.rows.size() << " bytes of rows";
}

struct Side {
    Side(Kernels kernels, const std::vector<int>& split)
        : model(tiny_model("tiny-llama", "Q8_0"), Repack::off, 1, kernels, nullptr, split),
          rig(model,
              {.capacity = 512,
               .path = kernels == Kernels::ggml ? AttentionPath::folded : AttentionPath::kernel}) {
        prompt = rig.feed(random_tokens(kContext, model.config.n_vocab, 1));
    }

    Outcome run(ForwardRequest request) {
        request.first_row = kContext;
        const ForwardResult result = rig.forward.run(request);
        Outcome outcome{.logits = {result.logits.begin(), result.logits.end()}};
        for (const auto& capture : result.captures) {
            outcome.captures.emplace_back(capture.begin(), capture.end());
        }
        rig.cache.commit(kContext + kRows);
        outcome.rows = rig.cache_bytes();
        rig.cache.truncate(kContext);
        return outcome;
    }

    LoadedModel model;
    ForwardRig rig;
    std::vector<std::vector<float>> prompt;
};

struct SplitCase {
    Kernels kernels;
    std::vector<int> split;
};

void PrintTo(const SplitCase& c, std::ostream* out) {
    *out << (c.kernels == Kernels::ggml ? "ggml" : "kernel");
    for (const int n_layers : c.split) {
        *out << '/' << n_layers;
    }
}

class Stages : public ::testing::TestWithParam<SplitCase> {
  protected:
    Stages()
        : whole_(GetParam().kernels, {}),
          split_(GetParam().kernels, GetParam().split),
          tokens_(random_tokens(kRows, whole_.model.config.n_vocab, 2)),
          all_rows_(kRows),
          all_captures_(static_cast<std::size_t>(2 * n_layers() + 1)) {
        std::iota(all_rows_.begin(), all_rows_.end(), 0);
        std::iota(all_captures_.begin(), all_captures_.end(), 0);
    }

    int n_layers() const { return whole_.model.config.n_layers; }

    // Runs a pass on one device and on several. Returns the outcome on one.
    Outcome expect_same(const ForwardRequest& request, const std::string& what = {}) {
        const Outcome expected = whole_.run(request);
        EXPECT_EQ(split_.run(request), expected) << what;
        return expected;
    }

    // A plan that skips layers [first, end).
    ModulePlan skipping(int first, int end) const {
        ModulePlan plan(n_layers());
        for (int layer = first; layer < end; ++layer) {
            plan.set(layer, Module::attention, Level::skip);
            plan.set(layer, Module::mlp, Level::skip);
        }
        return plan;
    }

    ModulePlan windowed() const {
        ModulePlan plan(n_layers());
        for (int layer = 0; layer < n_layers(); ++layer) {
            plan.set(layer, Module::attention, Level::windowed(4, layer % 2 == 0 ? 8 : 24));
        }
        return plan;
    }

    // The captures with indices [first, last].
    std::span<const int> captures(int first, int last) const {
        return std::span(all_captures_)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
    }

    Side whole_;
    Side split_;
    std::vector<Token> tokens_;
    std::vector<int> all_rows_;
    std::vector<int> all_captures_;
    const std::vector<int> some_rows_{1, 4, 7};
    const std::vector<int> parents_{-1, 0, 0, 1, 2, 2, 4, 3};
};

TEST_P(Stages, PromptsAndCachesEqualThoseOfOneDevice) {
    EXPECT_EQ(split_.prompt, whole_.prompt);
    EXPECT_EQ(split_.rig.cache_bytes(), whole_.rig.cache_bytes());
    EXPECT_EQ(split_.rig.cache.saved_row_bytes(), whole_.rig.cache.saved_row_bytes());
}

TEST_P(Stages, PassesEqualThoseOfOneDevice) {
    const ModulePlan windows = windowed();
    const AttentionLayout tree{.kind = Kind::tree, .parents = parents_};
    const AttentionLayout branches{.kind = Kind::branches, .branch_rows = 2};
    const AttentionLayout replay{.kind = Kind::replay, .context = kContext - kRows};
    for (const std::vector<int>& rows : {all_rows_, some_rows_, {}}) {
        const std::string what = std::to_string(rows.size()) + " logit rows";
        const std::span<const int> logits = rows;
        expect_same({.tokens = tokens_, .logit_rows = logits}, what);
        expect_same({.tokens = tokens_, .plan = &windows, .logit_rows = logits}, what);
        expect_same({.tokens = tokens_, .layout = tree, .logit_rows = logits}, what);
        expect_same({.tokens = tokens_, .plan = &windows, .layout = tree, .logit_rows = logits},
                    what);
        expect_same({.tokens = tokens_, .layout = branches, .logit_rows = logits}, what);
        expect_same({.tokens = tokens_, .layout = replay, .logit_rows = logits}, what);
    }
}

TEST_P(Stages, SkippedLayersGiveTheResultsOfOneDevice) {
    for (int first = 0; first < n_layers(); ++first) {
        for (int end = first + 1; end <= n_layers(); ++end) {
            const ModulePlan plan = skipping(first, end);
            expect_same({.tokens = tokens_, .plan = &plan, .logit_rows = some_rows_},
                        to_string(plan));
            expect_same({.tokens = tokens_, .plan = &plan, .captures = all_captures_},
                        to_string(plan));
        }
    }
}

TEST_P(Stages, CapturesEqualThoseOfOneDevice) {
    const Outcome all = expect_same({.tokens = tokens_, .captures = all_captures_});
    EXPECT_EQ(all.captures.size(), all_captures_.size());
    for (const int capture : all_captures_) {
        expect_same({.tokens = tokens_, .captures = captures(capture, capture)},
                    "capture " + std::to_string(capture));
        expect_same(
            {.tokens = tokens_, .captures = captures(capture, capture), .logit_rows = all_rows_},
            "capture and logits " + std::to_string(capture));
    }
}

TEST_P(Stages, EarlyExitsGiveTheResultsOfOneDevice) {
    for (int exit = 0; exit <= n_layers(); ++exit) {
        const std::string what = "exit " + std::to_string(exit);
        expect_same({.tokens = tokens_, .exit_layer = exit, .logit_rows = some_rows_}, what);
        expect_same({.tokens = tokens_, .exit_layer = exit, .captures = captures(0, 2 * exit)},
                    what);
    }
}

TEST_P(Stages, PassesResumeAtAnyLayer) {
    const Outcome streams = expect_same({.tokens = tokens_, .captures = all_captures_});
    for (int entry = 0; entry <= n_layers(); ++entry) {
        const std::vector<float>& hidden = streams.captures[static_cast<std::size_t>(2 * entry)];
        for (int exit = entry; exit <= n_layers(); ++exit) {
            const std::string what = std::to_string(entry) + " to " + std::to_string(exit);
            expect_same({.hidden = hidden,
                         .entry_layer = entry,
                         .exit_layer = exit,
                         .captures = captures(2 * entry, 2 * exit)},
                        what);
            expect_same({.hidden = hidden,
                         .entry_layer = entry,
                         .exit_layer = exit,
                         .logit_rows = all_rows_},
                        what + " with logits");
            expect_same({.hidden = hidden, .entry_layer = entry, .exit_layer = exit},
                        what + " with nothing");
        }
    }
}

TEST_P(Stages, ReducedHeadsGiveTheResultsOfOneDevice) {
    ModulePlan plan(n_layers());
    plan.set_head(HeadLevel::reduced);
    ASSERT_EQ(split_.rig.forward.cheapest_head(), HeadLevel::reduced);
    expect_same({.tokens = tokens_, .plan = &plan, .logit_rows = some_rows_});
}

TEST_P(Stages, CopiedRowsEqualThoseOfOneDevice) {
    for (Side* side : {&whole_, &split_}) {
        side->run({.tokens = tokens_});
        side->rig.cache.copy_row(kContext + 5, kContext + 1);
        side->rig.cache.commit(kContext + kRows);
    }
    EXPECT_EQ(split_.rig.cache_bytes(), whole_.rig.cache_bytes());
}

TEST_P(Stages, RowsSavedOnOneDeviceContinueOnSeveral) {
    Side fresh(GetParam().kernels, GetParam().split);
    const std::size_t n_bytes = fresh.rig.cache.saved_row_bytes() * kContext;
    std::vector<std::byte> rows(n_bytes);
    for (int layer = 0; layer < n_layers(); ++layer) {
        const std::vector<std::byte> zeros(n_bytes);
        fresh.rig.cache.write_rows(layer, kContext, zeros.data());
        whole_.rig.cache.read_rows(layer, kContext, rows.data());
        fresh.rig.cache.write_rows(layer, kContext, rows.data());
    }
    const ForwardRequest request{.tokens = tokens_, .logit_rows = all_rows_};
    EXPECT_EQ(fresh.run(request), whole_.run(request));
}

TEST_P(Stages, EachDeviceWithWorkRunsOneGraph) {
    const auto graphs_of = [&](const ForwardRequest& request) {
        const auto count = [&] {
            const GraphStatistics graphs = split_.rig.forward.statistics().graphs;
            return graphs.built + graphs.reused;
        };
        const std::int64_t before = count();
        split_.run(request);
        return count() - before;
    };
    const auto n_shares = static_cast<std::int64_t>(GetParam().split.size());
    EXPECT_EQ(graphs_of({.tokens = tokens_, .logit_rows = all_rows_}), n_shares);
    EXPECT_EQ(graphs_of({.tokens = tokens_}), n_shares);
    // The embedding and the head.
    EXPECT_EQ(graphs_of({.tokens = tokens_, .exit_layer = 0, .logit_rows = all_rows_}), 2);
    EXPECT_EQ(graphs_of({.tokens = tokens_, .exit_layer = 1}), 1);
    const ModulePlan nothing = skipping(0, n_layers());
    EXPECT_EQ(graphs_of({.tokens = tokens_, .plan = &nothing, .logit_rows = all_rows_}), 2);
    const std::vector<float> hidden(static_cast<std::size_t>(kRows * whole_.model.config.n_embd));
    EXPECT_EQ(graphs_of({.hidden = hidden, .entry_layer = n_layers(), .logit_rows = all_rows_}), 1);
}

TEST_P(Stages, AnyDeviceCanCancelAPass) {
    for (const LayerShare& share : split_.model.layers.shares()) {
        share.backend->set_abort([] { return true; });
        EXPECT_FALSE(split_.rig.forward.run({.tokens = tokens_, .first_row = kContext}).is_complete)
            << share.first_layer;
        share.backend->set_abort({});
    }
    expect_same({.tokens = tokens_, .logit_rows = all_rows_});
}

INSTANTIATE_TEST_SUITE_P(Splits,
                         Stages,
                         ::testing::Values(SplitCase{Kernels::ggml, {1, 3}},
                                           SplitCase{Kernels::ggml, {2, 2}},
                                           SplitCase{Kernels::ggml, {1, 1, 2}},
                                           SplitCase{Kernels::automatic, {3, 1}},
                                           SplitCase{Kernels::automatic, {1, 2, 1}}));

// As with a GPU beside the CPU.
TEST(MixedStages, EachDeviceReadsTheCacheInItsOwnLayout) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"), Repack::off, 1, Kernels::automatic, nullptr,
                      {2, 2});
    constexpr int kCapacity = 512;
    DeviceModels devices;
    const auto add_device = [&](std::size_t i, AttentionPath path) {
        devices.push_back(std::make_unique<GgmlDeviceModel>(model.config, model.weights->tensors(),
                                                            model.layers.shares()[i], CacheTypes{},
                                                            AttentionPolicy{.path = path}));
    };
    add_device(0, AttentionPath::kernel);
    add_device(1, AttentionPath::flash);
    SingleSequence rows_of_both(model.config, devices, kCapacity, 256);
    Sequence& cache = rows_of_both.sequence();
    Forward& forward = rows_of_both.forward();
    EXPECT_EQ(rows_of_both.pipeline().device_limits().attention, "flash");

    Side whole(Kernels::automatic, {});
    EXPECT_EQ(whole.rig.single.pipeline().device_limits().attention, "kernel");
    const auto text = random_tokens(kContext, model.config.n_vocab, 1);
    forward.run({.tokens = text});
    cache.commit(kContext);
    const auto tokens = random_tokens(kRows, model.config.n_vocab, 2);
    const std::vector<int> rows{0, 3, 7};
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    const ForwardRequest request{.tokens = tokens,
                                 .first_row = kContext,
                                 .layout = {.kind = Kind::tree, .parents = parents},
                                 .logit_rows = rows};
    const Outcome expected = whole.run(request);
    // Flash attention on the CPU sums in half precision; logits are about 1 in size.
    EXPECT_LT(max_abs_difference(forward.run(request).logits, expected.logits), 0.05f);
    EXPECT_GT(max_abs_difference(std::vector<float>(expected.logits.size()), expected.logits),
              0.5f);
}

}  // namespace
}  // namespace knap::test::stages_test
