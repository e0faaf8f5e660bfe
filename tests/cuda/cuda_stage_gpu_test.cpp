// Passes with the CUDA kernels: against the CPU, and against themselves bit for bit.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>

#include <gtest/gtest.h>

#include "base/text.h"
#include "cuda/cuda_weights.h"
#include "kernels/cuda/cache_pages.h"
#include "support/gguf_variant.h"
#include "support/rounding_error.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"

namespace knap::test::cuda_stage_gpu_test {
namespace {

using Rows = std::vector<std::vector<float>>;
using Kind = AttentionLayout::Kind;

struct ModelCase {
    const char* shape;
    const char* type;
    int window = 0;  // of its layers that have one; 0: as the shape says
};

void PrintTo(const ModelCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type;
    if (c.window > 0) {
        *out << '/' << c.window;
    }
}

std::filesystem::path path_of(const ModelCase& c) {
    const std::filesystem::path path = tiny_model(c.shape, c.type);
    if (c.window == 0) {
        return path;
    }
    GgufVariant variant(path);
    const std::string architecture = read_config(GgufFile::open(path)).architecture;
    gguf_set_val_u32(variant.metadata(), concat(architecture, ".attention.sliding_window").c_str(),
                     static_cast<std::uint32_t>(c.window));
    return variant.write(concat(c.shape, "-", c.type, "-", c.window, ".gguf"));
}

// The first row with other bits; as many as there are: none.
std::size_t first_difference(const Rows& rows, const Rows& expected) {
    std::size_t row = 0;
    while (row < expected.size() && rows[row] == expected[row]) {
        ++row;
    }
    return row;
}

// Logits of all rows.
Rows logits_of(Forward& forward, ForwardRequest request) {
    std::vector<int> rows(static_cast<std::size_t>(count_rows(request, forward.config())));
    std::iota(rows.begin(), rows.end(), 0);
    request.logit_rows = rows;
    const ForwardResult result = forward.run(request);
    const auto n_vocab = static_cast<std::size_t>(forward.config().n_vocab);
    Rows logits;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = result.logits.subspan(i * n_vocab, n_vocab);
        logits.emplace_back(row.begin(), row.end());
    }
    return logits;
}

// A text that is read in passes of so many rows.
Rows read(SingleSequence& sequence, std::span<const Token> text, int n_rows) {
    Rows logits;
    for (int at = 0; at < static_cast<int>(text.size()); at += n_rows) {
        const auto part = text.subspan(
            static_cast<std::size_t>(at),
            std::min(static_cast<std::size_t>(n_rows), text.size() - static_cast<std::size_t>(at)));
        const Rows rows = logits_of(sequence.forward(), {.tokens = part, .first_row = at});
        logits.insert(logits.end(), rows.begin(), rows.end());
        sequence.sequence().commit(at + static_cast<int>(part.size()));
    }
    return logits;
}

class CudaStageTest : public ::testing::TestWithParam<ModelCase> {};

TEST_P(CudaStageTest, ReadsATextAsTheCpuDoes) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(path_of(GetParam()));
    const DeviceModels devices = model.device_models();
    const auto text = random_tokens(GetParam().window == 0 ? 300 : 500, model.config().n_vocab, 1);
    ForwardRig cpu(model.host(), {.path = AttentionPath::folded});
    const Rows expected = cpu.feed(text);
    const double bound = 3 * rounding_error(model.host(), text, Factors::as_stored).relative +
                         8 * rounding_error(model.host(), text, Factors::f16).relative;
    for (const int n_rows : {1, 3, 8, 16, 500}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows logits = read(sequence, text, n_rows);
        EXPECT_LE(difference(logits, expected).relative, bound) << n_rows << " rows at once";
    }
}

TEST_P(CudaStageTest, RowsHaveTheirBitsInPassesOfAnySize) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(path_of(GetParam()));
    const DeviceModels devices = model.device_models();
    const auto text = random_tokens(GetParam().window == 0 ? 530 : 900, model.config().n_vocab, 2);
    SingleSequence single(model.config(), devices, 1024, 512);
    const Rows alone = read(single, text, 1);
    for (const int n_rows : {2, 5, 8, 11, 16, 17, 100, 512}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows together = read(sequence, text, n_rows);
        EXPECT_EQ(first_difference(together, alone), alone.size()) << n_rows << " rows at once";
    }
}

// A row of a tree has the bits that it has as the last row of its path.
TEST_P(CudaStageTest, TreesHaveTheBitsOfTheirPaths) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(path_of(GetParam()));
    const DeviceModels devices = model.device_models();
    const int context = GetParam().window == 0 ? 254 : 600;
    const auto text = random_tokens(context + 8, model.config().n_vocab, 3);
    const auto tree = std::span(text).last(8);
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    SingleSequence sequence(model.config(), devices, 1024, 512);
    read(sequence, std::span(text).first(static_cast<std::size_t>(context)), 512);
    const Rows rows = logits_of(
        sequence.forward(),
        {.tokens = tree, .first_row = context, .layout = {.kind = Kind::tree, .parents = parents}});
    Rows paths;
    for (int node = 0; node < 8; ++node) {
        std::vector<Token> path;
        for (int at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) {
            path.insert(path.begin(), tree[static_cast<std::size_t>(at)]);
        }
        paths.push_back(
            logits_of(sequence.forward(), {.tokens = path, .first_row = context}).back());
    }
    EXPECT_EQ(first_difference(rows, paths), paths.size());
}

// The choices of a chain are those of single rows.
TEST_P(CudaStageTest, ChainsChooseAsSingleRowsDo) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(path_of(GetParam()));
    const DeviceModels devices = model.device_models();
    const int context = GetParam().window == 0 ? 250 : 505;  // then a part ends
    const auto text = random_tokens(context + 1, model.config().n_vocab, 4);
    SingleSequence sequence(model.config(), devices, 1024, 512);
    read(sequence, std::span(text).first(static_cast<std::size_t>(context)), 512);
    const ModulePlan plan(model.config().n_layers);
    const ChainResult chain = sequence.forward().run_chain(
        {.token = text.back(), .plan = &plan, .first_row = context, .n_steps = 16});
    const std::vector<Token> chosen(chain.tokens.begin(), chain.tokens.end());
    std::vector<Token> expected;
    Token token = text.back();
    for (int step = 0; step < 16; ++step) {
        const Rows logits =
            logits_of(sequence.forward(), {.tokens = {&token, 1}, .first_row = context + step});
        token = static_cast<Token>(std::ranges::max_element(logits[0]) - logits[0].begin());
        expected.push_back(token);
    }
    EXPECT_EQ(chosen, expected);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         CudaStageTest,
                         ::testing::Values(ModelCase{"small-llama", "Q4_0"},
                                           ModelCase{"small-llama", "Q4_1"},
                                           ModelCase{"small-llama", "Q5_0"},
                                           ModelCase{"small-llama", "Q8_0"},
                                           ModelCase{"small-llama", "Q4_K"},
                                           ModelCase{"small-llama", "Q5_K"},
                                           ModelCase{"small-llama", "Q6_K"},
                                           ModelCase{"small-llama", "MXFP4"},
                                           ModelCase{"small-llama", "F16"},
                                           ModelCase{"small-llama", "BF16"},
                                           ModelCase{"small-qwen3", "Q4_K"},
                                           ModelCase{"small-qwen3", "Q8_0"},
                                           ModelCase{"small-qwen2", "Q4_0"},
                                           ModelCase{"small-ernie4.5", "Q8_0"},
                                           ModelCase{"small-granite", "Q8_0"},
                                           ModelCase{"small-granite", "F16"},
                                           ModelCase{"small-mistral3", "Q8_0"},
                                           ModelCase{"small-phi", "Q8_0"},
                                           ModelCase{"small-seed-oss", "Q8_0"},
                                           ModelCase{"small-smollm3", "Q8_0"},
                                           ModelCase{"small-qwen3vl", "Q8_0"},
                                           ModelCase{"small-hunyuan-dense", "Q8_0"},
                                           ModelCase{"small-gemma2", "Q8_0"},
                                           ModelCase{"small-gemma2", "F16"},
                                           ModelCase{"small-gemma3", "Q8_0"},
                                           ModelCase{"small-gemma3", "Q4_K"},
                                           ModelCase{"small-olmo2", "Q8_0"},
                                           ModelCase{"small-olmo2", "F16"},
                                           ModelCase{"small-glm4", "Q4_0"},
                                           ModelCase{"small-exaone4", "Q8_0"},
                                           ModelCase{"small-exaone4", "BF16"},
                                           // Windows that begin in another part than they end.
                                           ModelCase{"small-gemma2", "Q8_0", 300},
                                           ModelCase{"small-gemma3", "Q8_0", 257},
                                           ModelCase{"small-olmo2", "Q8_0", 300}));

struct CacheCase {
    const char* shape;
    const char* type;
    CacheTypes caches;
};

void PrintTo(const CacheCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << '/' << to_string(c.caches.keys) << '/'
         << to_string(c.caches.values);
}

class CudaCacheTest : public ::testing::TestWithParam<CacheCase> {};

TEST_P(CudaCacheTest, ReadsATextAsTheCpuDoes) {
    KNAP_SKIP_WITHOUT_STRIPS();
    const CacheTypes& caches = GetParam().caches;
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const DeviceModels devices = model.device_models(caches);
    const auto text = random_tokens(300, model.config().n_vocab, 1);
    const Rows exact = ForwardRig(model.host(), {.path = AttentionPath::folded}).feed(text);
    const Rows expected =
        ForwardRig(model.host(),
                   {.type_k = caches.keys, .type_v = caches.values, .path = AttentionPath::flash})
            .feed(text);
    // Both round what they store, and the CPU its queries too.
    const double bound = 3 * rounding_error(model.host(), text, Factors::as_stored).relative +
                         8 * rounding_error(model.host(), text, Factors::f16).relative +
                         difference(expected, exact).relative;
    for (const int n_rows : {1, 3, 8, 16, 300}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows logits = read(sequence, text, n_rows);
        EXPECT_LE(difference(logits, exact).relative, bound) << n_rows << " rows at once";
    }
}

TEST_P(CudaCacheTest, RowsHaveTheirBitsInPassesOfAnySize) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const DeviceModels devices = model.device_models(GetParam().caches);
    const auto text = random_tokens(900, model.config().n_vocab, 2);
    SingleSequence single(model.config(), devices, 1024, 512);
    const Rows alone = read(single, text, 1);
    for (const int n_rows : {3, 8, 16, 17, 512}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows together = read(sequence, text, n_rows);
        const auto differs = std::ranges::mismatch(together, alone).in1 - together.begin();
        EXPECT_EQ(differs, std::ssize(alone)) << n_rows << " rows at once";
    }
}

// The least shared memory of a block, in KiB, with which a pass has so many rows.
int least_memory(const StripModel& model, int n_rows) {
    const StepNeeds needs = step_needs(model.config(), model.tensors());
    int kib = 227;
    while (max_step_rows(needs, static_cast<std::size_t>(kib - 1) * 1024) >= n_rows) {
        --kib;
    }
    return kib;
}

// Devices with less shared memory copy fewer weights ahead, or take fewer rows at once.
TEST_P(CudaCacheTest, RowsHaveTheirBitsWithLessSharedMemory) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const auto text = random_tokens(400, model.config().n_vocab, 5);
    const DeviceModels usual = model.device_models(GetParam().caches);
    SingleSequence single(model.config(), usual, 1024, 512);
    const Rows alone = read(single, text, 1);
    for (const int kib : {163, least_memory(model, 16), least_memory(model, 8)}) {
        const DeviceModels devices =
            model.device_models(GetParam().caches, static_cast<std::size_t>(kib) * 1024);
        for (const int n_rows : {1, 8, 16, 400}) {
            SingleSequence sequence(model.config(), devices, 1024, 512);
            const Rows together = read(sequence, text, n_rows);
            const auto differs = std::ranges::mismatch(together, alone).in1 - together.begin();
            EXPECT_EQ(differs, std::ssize(alone)) << kib << " KiB, " << n_rows << " rows at once";
        }
    }
}

// Saved rows, brought back, are what they were.
TEST_P(CudaCacheTest, GoesOnFromSavedRows) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const DeviceModels devices = model.device_models(GetParam().caches);
    const auto text = random_tokens(301, model.config().n_vocab, 3);
    SingleSequence first(model.config(), devices, 1024, 512);
    read(first, std::span(text).first(300), 300);
    SingleSequence second(model.config(), devices, 1024, 512);
    read(second, random_tokens(300, model.config().n_vocab, 4), 300);
    const auto rows_of = [](const Sequence& sequence) {
        return std::vector<StoredRows>{{sequence.stored_row(0), kCudaPageRows},
                                       {sequence.stored_row(kCudaPageRows), 300 - kCudaPageRows}};
    };
    KvMemory& from = first.pipeline().memory();
    KvMemory& to = second.pipeline().memory();
    std::vector<std::byte> saved(300 * from.saved_row_bytes());
    for (int layer = 0; layer < model.config().n_layers; ++layer) {
        from.of_layer(layer).export_rows(layer, rows_of(first.sequence()), saved.data());
        to.of_layer(layer).import_rows(layer, rows_of(second.sequence()), saved.data());
    }
    const ForwardRequest last{.tokens = std::span(text).last(1), .first_row = 300};
    EXPECT_EQ(logits_of(second.forward(), last), logits_of(first.forward(), last));
}

constexpr CacheTypes kInt8{CacheType::q8_0, CacheType::q8_0};
INSTANTIATE_TEST_SUITE_P(
    Caches,
    CudaCacheTest,
    ::testing::Values(CacheCase{"small-llama", "Q8_0", kInt8},
                      CacheCase{"small-llama", "Q4_K", {CacheType::q8_0, CacheType::f16}},
                      CacheCase{"small-qwen3", "Q8_0", kInt8},
                      CacheCase{"small-qwen3", "Q4_0", {CacheType::f16, CacheType::q8_0}},
                      CacheCase{"small-llama-96", "Q8_0", {}},
                      CacheCase{"small-llama-96", "F16", {}},
                      CacheCase{"small-llama-96", "Q4_K", kInt8},
                      CacheCase{"small-llama-256", "Q8_0", {}},
                      CacheCase{"small-llama-256", "F16", {}},
                      CacheCase{"small-llama-256", "Q4_K", kInt8}));

}  // namespace
}  // namespace knap::test::cuda_stage_gpu_test
