#include "kv/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::kv_cache_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const KvCacheOptions& options, const char* shape) {
    LoadedModel model(tiny_model(shape, "F32"));
    try {
        KvCache cache(model.config, model.backend, options);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(KvCache, CommitAndTruncateMoveTheBoundary) {
    LoadedModel model(tiny_model());
    KvCache cache(model.config, model.backend, {.capacity = 64});
    EXPECT_EQ(cache.committed(), 0);
    cache.commit(10);
    cache.commit(64);
    EXPECT_EQ(cache.committed(), 64);
    cache.truncate(3);
    EXPECT_EQ(cache.committed(), 3);
}

TEST(KvCacheDeathTest, MovingTheBoundaryTheWrongWayIsABug) {
    LoadedModel model(tiny_model());
    KvCache cache(model.config, model.backend, {.capacity = 64});
    cache.commit(10);
    EXPECT_DEATH(cache.commit(9), "moves forward");
    EXPECT_DEATH(cache.commit(65), "within the cache");
    EXPECT_DEATH(cache.truncate(11), "moves backward");
}

TEST(KvCache, QuantisedValuesNeedFlashAttention) {
    const std::string message =
        error_of({.capacity = 64, .type_v = CacheType::q8_0}, "small-llama");
    EXPECT_THAT(message, HasSubstr("`.cache_type_v` q8_0"));
    EXPECT_THAT(message, HasSubstr("`.flash_attention` on"));
    EXPECT_EQ(error_of({.capacity = 64, .type_v = CacheType::q8_0, .layout = KvLayout::rows},
                       "small-llama"),
              "");
}

TEST(KvCache, QuantisedRowsNeedAFittingHeadSize) {
    EXPECT_THAT(error_of({.capacity = 64, .type_k = CacheType::q8_0}, "tiny-llama"),
                HasSubstr("multiple of 32, found 16"));
}

TEST(KvCache, BytesFollowFromTheShape) {
    LoadedModel model(tiny_model());
    const auto n_values = static_cast<std::size_t>(model.config.n_embd_kv());
    const auto n_all_rows = 64 * static_cast<std::size_t>(model.config.n_layers);
    KvCache f16(model.config, model.backend, {.capacity = 64});
    EXPECT_EQ(f16.saved_row_bytes(), n_values * 2 * 2);
    EXPECT_GE(f16.bytes(), f16.saved_row_bytes() * n_all_rows);
    KvCache f32(model.config, model.backend,
                {.capacity = 64, .type_k = CacheType::f32, .type_v = CacheType::f32});
    EXPECT_EQ(f32.saved_row_bytes(), n_values * 2 * 4);
    KvCache int8(model.config, model.backend,
                 {.capacity = 64,
                  .type_k = CacheType::q8_0,
                  .type_v = CacheType::q8_0,
                  .layout = KvLayout::tiled_int8});
    const auto n_scales = static_cast<std::size_t>(model.config.n_kv_heads);
    EXPECT_EQ(int8.saved_row_bytes(), 2 * (n_values + 2 * n_scales));
    EXPECT_GE(int8.bytes(), int8.saved_row_bytes() * n_all_rows);
}

std::vector<ForwardOptions> all_layouts() {
    std::vector<ForwardOptions> layouts;
    for (const AttentionPath path :
         {AttentionPath::kernel, AttentionPath::folded, AttentionPath::flash}) {
        layouts.push_back({.capacity = 256, .path = path});
    }
    layouts.push_back({.capacity = 256,
                       .type_k = CacheType::q8_0,
                       .type_v = CacheType::q8_0,
                       .path = AttentionPath::kernel});
    return layouts;
}

TEST(KvCache, RestoredRowsContinueLikeTheOriginal) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    for (const ForwardOptions& options : all_layouts()) {
        ForwardRig original(model, options);
        original.feed(random_tokens(33, model.config.n_vocab, 1));
        ForwardRig restored(model, options);
        std::vector<std::byte> rows(original.cache.saved_row_bytes() * 33);
        for (int layer = 0; layer < model.config.n_layers; ++layer) {
            original.cache.read_rows(layer, 33, rows.data());
            restored.cache.write_rows(layer, 33, rows.data());
        }
        restored.cache.commit(33);
        const auto next = random_tokens(5, model.config.n_vocab, 2);
        EXPECT_EQ(restored.feed(next), original.feed(next)) << to_string(*options.path);
    }
}

// The bytes of each committed row, in all layers and heads.
std::vector<std::vector<std::byte>> rows_of(const ForwardRig& rig) {
    const auto n_rows = static_cast<std::size_t>(rig.cache.committed());
    const auto n_heads = static_cast<std::size_t>(rig.model.config.n_kv_heads);
    const std::size_t piece = rig.cache.saved_row_bytes() / 2 / n_heads;
    const auto bytes = rig.cache_bytes();
    std::vector<std::vector<std::byte>> rows(n_rows);
    for (std::size_t i = 0; i * piece < bytes.size(); ++i) {  // head by head, row by row
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(i * piece);
        std::vector<std::byte>& row = rows[i % n_rows];
        row.insert(row.end(), first, first + static_cast<std::ptrdiff_t>(piece));
    }
    return rows;
}

TEST(KvCache, CopiedRowEqualsItsSourceAndOthersStay) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    for (const ForwardOptions& options : all_layouts()) {
        ForwardRig rig(model, options);
        rig.feed(random_tokens(40, model.config.n_vocab, 1));
        auto expected = rows_of(rig);
        ASSERT_NE(expected[17], expected[38]);
        expected[17] = expected[38];
        rig.cache.truncate(17);
        rig.cache.copy_row(38, 17);
        rig.cache.commit(40);
        EXPECT_EQ(rows_of(rig), expected) << to_string(*options.path);
    }
}

// A short text in a long context then takes little memory, even with large pages.
TEST(KvCache, FirstRowsOfEveryLayerAreTogetherForOurKernel) {
    LoadedModel model(tiny_model());
    for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
        const KvCache cache(model.config, model.backend,
                            {.capacity = 1024,
                             .type_k = type,
                             .type_v = type,
                             .layout = layout_for(AttentionPath::kernel, type)});
        const auto* begin = static_cast<const std::byte*>(cache.of_layer(0).tensors(0).keys->data);
        for (int layer = 0; layer < model.config.n_layers; ++layer) {
            const KvTensors tensors = cache.of_layer(layer).tensors(layer);
            for (const ggml_tensor* tensor : {tensors.keys, tensors.values}) {
                for (int head = 0; head < model.config.n_kv_heads; ++head) {
                    const auto* last = cached_row<const std::byte>(tensor, head, 255);
                    EXPECT_LT(last - begin, static_cast<std::ptrdiff_t>(cache.bytes() / 4));
                    EXPECT_GE(cached_row<const std::byte>(tensor, head, 256) - begin,
                              static_cast<std::ptrdiff_t>(cache.bytes() / 4));
                }
            }
        }
    }
}

TEST(KvCacheDeathTest, CopyingOverACommittedRowIsABug) {
    LoadedModel model(tiny_model());
    KvCache cache(model.config, model.backend, {.capacity = 64});
    cache.commit(10);
    EXPECT_DEATH(cache.copy_row(12, 9), "only scratch rows");
}

}  // namespace
}  // namespace knap::test::kv_cache_test
