// Windowed attention: which rows it reads and what it costs. A row's bits depend only on the rows
// that it attends to.
#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/naive_layout.h"
#include "support/path_case.h"
#include "support/tiny_model.h"

namespace knap::test::window_test {
namespace {

// For logits with a spread of about 1. The difference comes from other kernels of ggml's flash
// attention, which sum in half precision, and from activations rounded to 8 bits after them.
constexpr float kFlashBound = 0.5f;

using Rows = std::vector<std::vector<float>>;

ModulePlan window_plan(int n_layers, const Window& window) {
    ModulePlan plan(n_layers);
    for (int layer = 0; layer < n_layers; ++layer) {
        plan.set(layer, Module::attention, Level::windowed(window.sinks, window.recent));
    }
    return plan;
}

float max_difference(const Rows& a, const Rows& b) {
    float most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        most = std::max(most, max_abs_difference(a[i], b[i]));
    }
    return most;
}

std::span<const Token> one(const std::vector<Token>& tokens, int i) {
    return std::span(tokens).subspan(static_cast<std::size_t>(i), 1);
}

// A rig with `context` committed rows.
struct FilledRig : ForwardRig {
    FilledRig(LoadedModel& loaded, const PathCase& c, int capacity, int context)
        : ForwardRig(loaded, c.options(capacity, 1024)) {
        if (context > 0) {
            feed(random_tokens(context, loaded.config.n_vocab, 1));
        }
    }
};

class WindowedPass : public ::testing::TestWithParam<PathCase> {};

TEST_P(WindowedPass, WindowThatCoversTheContextAgreesWithFullAttention) {
    LoadedModel model(tiny_model(GetParam().shape, "F32"));
    const auto draft = random_tokens(5, model.config.n_vocab, 3);
    // Products of ggml round attention weights to half precision, those over int8 to eight bits.
    const float with_sinks = GetParam().is_int8()                       ? 0.1f
                             : GetParam().path == AttentionPath::kernel ? 1e-4f
                                                                        : 2e-3f;
    for (const int context : {1, 60, 300, 700}) {
        FilledRig rig(model, GetParam(), 1024, context);
        const Rows full = rig.run({.tokens = draft, .first_row = context});
        for (const Window window : {Window{0, context},
                                    {0, 5000},
                                    {16, context},
                                    {context, 0},
                                    {context / 2, context - context / 2}}) {
            const ModulePlan plan = window_plan(model.config.n_layers, window);
            const Rows rows = rig.run({.tokens = draft, .plan = &plan, .first_row = context});
            // Without sinks there is one run, and the order of sums is that of full attention.
            const float bound = window.sinks == 0 ? 0.0f : with_sinks;
            EXPECT_LE(max_difference(rows, full), bound)
                << context << " rows, window " << window.sinks << "+" << window.recent;
        }
    }
}

// Windows near both ends of the cache, longer than the context, without sinks or recent rows.
struct Place {
    int capacity;
    int context;
    Window window;
};
constexpr Place kPlaces[] = {{512, 300, {16, 64}}, {512, 300, {0, 64}},  {512, 300, {16, 0}},
                             {512, 300, {0, 0}},   {512, 505, {16, 64}}, {512, 505, {70, 130}},
                             {512, 40, {16, 256}}, {512, 40, {100, 8}},  {576, 290, {130, 33}},
                             {512, 0, {16, 64}},   {320, 310, {64, 200}}};

TEST_P(WindowedPass, SingleRowsEqualOnePassWhateverTheCapacity) {
    LoadedModel model(tiny_model(GetParam().shape, "Q8_0"));
    const auto draft = random_tokens(6, model.config.n_vocab, 3);
    const bool is_row_invariant = GetParam().path != AttentionPath::flash;
    for (const Place& place : kPlaces) {
        const ModulePlan plan = window_plan(model.config.n_layers, place.window);
        FilledRig at_once(model, GetParam(), place.capacity, place.context);
        FilledRig step_by_step(model, GetParam(), 1024, place.context);
        const Rows expected =
            at_once.run({.tokens = draft, .plan = &plan, .first_row = place.context});
        Rows rows;
        for (int i = 0; i < 6; ++i) {
            rows.push_back(step_by_step.run(
                {.tokens = one(draft, i), .plan = &plan, .first_row = place.context + i})[0]);
        }
        EXPECT_LE(max_difference(rows, expected), is_row_invariant ? 0.0f : kFlashBound)
            << place.context << " rows, window " << place.window.sinks << "+"
            << place.window.recent;
    }
}

TEST_P(WindowedPass, LongRoundsEqualShortOnes) {
    LoadedModel model(tiny_model(GetParam().shape, "Q8_0"));
    constexpr int kRows = 150;
    const auto draft = random_tokens(kRows, model.config.n_vocab, 3);
    const ModulePlan plan = window_plan(model.config.n_layers, {16, 40});
    FilledRig at_once(model, GetParam(), 1024, 333);
    FilledRig in_parts(model, GetParam(), 1024, 333);
    const Rows expected = at_once.run({.tokens = draft, .plan = &plan, .first_row = 333});
    Rows rows;
    for (int i = 0; i < kRows; i += 30) {
        const auto part = std::span(draft).subspan(static_cast<std::size_t>(i), 30);
        Rows of_part = in_parts.run({.tokens = part, .plan = &plan, .first_row = 333 + i});
        std::move(of_part.begin(), of_part.end(), std::back_inserter(rows));
    }
    EXPECT_LE(max_difference(rows, expected),
              GetParam().path != AttentionPath::flash ? 0.0f : kFlashBound);
}

TEST_P(WindowedPass, OneGraphServesWhileTheWindowMoves) {
    LoadedModel model(tiny_model(GetParam().shape, "Q8_0"));
    const auto text = random_tokens(640, model.config.n_vocab, 1);
    const ModulePlan plan = window_plan(model.config.n_layers, {16, 256});
    FilledRig rig(model, GetParam(), 1024, 400);
    const auto draft_at = [&](int context) {
        for (int i = 0; i < 3; ++i) {
            rig.run({.tokens = one(text, context + i),
                     .plan = &plan,
                     .first_row = context + i,
                     .layout = {.context = context}});
        }
    };
    draft_at(400);
    const ForwardStatistics before = rig.forward.statistics();
    for (int context = 401; context < 600; ++context) {
        draft_at(context);
    }
    const ForwardStatistics after = rig.forward.statistics();
    // Without our kernel, there is one graph for every step of the window.
    const int n_built = GetParam().path == AttentionPath::kernel ? 0 : 200 / kRunStep + 1;
    EXPECT_LE(after.graphs.built - before.graphs.built, n_built);
    EXPECT_EQ(after.reservations, before.reservations);
}

TEST_P(WindowedPass, MasksOfManyWindowsGetMemory) {
    LoadedModel model(tiny_model(GetParam().shape, "Q8_0"));
    ModulePlan plan(model.config.n_layers);
    for (int layer = 0; layer < model.config.n_layers; ++layer) {
        plan.set(layer, Module::attention, Level::windowed(16 + layer, 200));
    }
    const auto text = random_tokens(256, model.config.n_vocab, 1);
    ForwardRig rig(model, GetParam().options(256, 256));
    const Rows full = rig.run({.tokens = text});
    const std::size_t before = rig.forward.statistics().scratch_bytes;
    const Rows rows = rig.run({.tokens = text, .plan = &plan});
    if (GetParam().path != AttentionPath::kernel) {  // which has no masks
        EXPECT_GT(rig.forward.statistics().scratch_bytes, before);
    }
    EXPECT_EQ(rig.run({.tokens = text}), full) << "its graph was of the masks before";
    FilledRig roomy(model, GetParam(), 1024, 0);
    EXPECT_EQ(roomy.run({.tokens = text, .plan = &plan}), rows);
}

INSTANTIATE_TEST_SUITE_P(Paths, WindowedPass, all_path_cases());

// Cache types with the paths that support them.
struct CacheCase {
    AttentionPath path;
    CacheType type_k;
    CacheType type_v;
};

class HiddenRows : public ::testing::TestWithParam<CacheCase> {
  protected:
    static constexpr int kContext = 200;

    HiddenRows()
        : model_(tiny_model("small-llama", "Q8_0")),
          rig_(model_,
               {.capacity = 512,
                .type_k = GetParam().type_k,
                .type_v = GetParam().type_v,
                .path = GetParam().path}),
          other_text_(cache_of_text(9)),
          text_(cache_of_text(1)) {}

    // The committed rows of every layer, as the cache saves them.
    std::vector<std::vector<std::byte>> cache_of_text(unsigned seed) {
        rig_.cache.truncate(0);
        rig_.feed(random_tokens(kContext, model_.config.n_vocab, seed));
        std::vector<std::vector<std::byte>> layers;
        for (int layer = 0; layer < model_.config.n_layers; ++layer) {
            layers.emplace_back(rig_.cache.saved_row_bytes() * kContext);
            rig_.cache.read_rows(layer, kContext, layers.back().data());
        }
        return layers;
    }

    void restore_text() {
        for (int layer = 0; layer < model_.config.n_layers; ++layer) {
            rig_.cache.write_rows(layer, kContext, text_[static_cast<std::size_t>(layer)].data());
        }
    }

    // Writes the text's rows to every layer, except that row `j` is of the other text.
    void replace_row(int j) {
        const auto n_heads = static_cast<std::size_t>(model_.config.n_kv_heads);
        for (int layer = 0; layer < model_.config.n_layers; ++layer) {
            auto bytes = text_[static_cast<std::size_t>(layer)];
            std::size_t offset = 0;
            for (const CacheType type : {GetParam().type_k, GetParam().type_v}) {
                const KvLayout layout = layout_for(GetParam().path, type);
                const std::size_t size =
                    kv_row_bytes(model_.config, {type, type}, layout) / 2 / n_heads;
                for (std::size_t head = 0; head < n_heads; ++head) {
                    const auto at =
                        static_cast<std::ptrdiff_t>(offset + size * static_cast<std::size_t>(j));
                    const auto& other = other_text_[static_cast<std::size_t>(layer)];
                    std::copy_n(other.begin() + at, size, bytes.begin() + at);
                    offset += size * kContext;
                }
            }
            rig_.cache.write_rows(layer, kContext, bytes.data());
        }
    }

    LoadedModel model_;
    ForwardRig rig_;
    std::vector<std::vector<std::byte>> other_text_;
    std::vector<std::vector<std::byte>> text_;
};

TEST_P(HiddenRows, DoNotChangeABitButVisibleOnesDo) {
    const auto draft = random_tokens(2, model_.config.n_vocab, 3);
    for (const Window window : {Window{16, 64}, {70, 0}, {0, 30}}) {
        const ModulePlan plan = window_plan(model_.config.n_layers, window);
        const ForwardRequest request{.tokens = draft, .plan = &plan, .first_row = kContext};
        restore_text();
        const Rows expected = rig_.run(request);
        for (int j = 0; j < kContext; ++j) {
            replace_row(j);
            const Rows rows = rig_.run(request);
            const bool is_visible = naively_sees({.context = kContext}, {window}, kContext, 0, j);
            ASSERT_EQ(rows[0] != expected[0], is_visible)
                << "row " << j << ", window " << window.sinks << "+" << window.recent;
            ASSERT_EQ(rows[1] != expected[1], is_visible) << "row " << j;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Caches,
    HiddenRows,
    ::testing::Values(CacheCase{AttentionPath::kernel, CacheType::f16, CacheType::f16},
                      CacheCase{AttentionPath::kernel, CacheType::q8_0, CacheType::q8_0},
                      CacheCase{AttentionPath::folded, CacheType::f16, CacheType::f16},
                      CacheCase{AttentionPath::folded, CacheType::f32, CacheType::f32},
                      CacheCase{AttentionPath::folded, CacheType::q8_0, CacheType::f16},
                      CacheCase{AttentionPath::flash, CacheType::f16, CacheType::f16},
                      CacheCase{AttentionPath::flash, CacheType::f32, CacheType::f32},
                      CacheCase{AttentionPath::flash, CacheType::q8_0, CacheType::q8_0}));

}  // namespace
}  // namespace knap::test::window_test
