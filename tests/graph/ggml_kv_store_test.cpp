#include "graph/cache/ggml_kv_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::ggml_kv_store_test {
namespace {

using ::testing::HasSubstr;

constexpr PageShape kOnePage{.page_rows = 256, .n_pages = 1};

LayerShare all_layers(LoadedModel& model) {
    return {.backend = &model.backend, .end_layer = model.config.n_layers};
}

std::string error_of(const CacheTypes& types, KvLayout layout, const char* shape) {
    LoadedModel model(tiny_model(shape, "F32"));
    try {
        GgmlKvStore store(model.config, all_layers(model),
                          {.types = types, .layout = layout, .pages = kOnePage});
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(GgmlKvStore, QuantisedValuesNeedFlashAttention) {
    const CacheTypes types{CacheType::f16, CacheType::q8_0};
    const std::string message = error_of(types, KvLayout::transposed_values, "small-llama");
    EXPECT_THAT(message, HasSubstr("`.cache_type_v` q8_0"));
    EXPECT_THAT(message, HasSubstr("`.flash_attention` on"));
    EXPECT_EQ(error_of(types, KvLayout::rows, "small-llama"), "");
}

TEST(GgmlKvStore, QuantisedRowsNeedAFittingHeadSize) {
    EXPECT_THAT(error_of({CacheType::q8_0, CacheType::f16}, KvLayout::rows, "tiny-llama"),
                HasSubstr("multiple of 32, found 16"));
}

TEST(GgmlKvStore, BytesFollowFromTheShape) {
    LoadedModel model(tiny_model());
    const auto n_values = static_cast<std::size_t>(model.config.n_embd_kv());
    const auto n_all_rows = 256 * static_cast<std::size_t>(model.config.n_layers);
    const auto new_store = [&](CacheType type, KvLayout layout) {
        return std::make_unique<GgmlKvStore>(
            model.config, all_layers(model),
            KvStoreShape{.types = {type, type}, .layout = layout, .pages = kOnePage});
    };
    const auto f16 = new_store(CacheType::f16, KvLayout::transposed_values);
    EXPECT_EQ(f16->saved_row_bytes(), n_values * 2 * 2);
    EXPECT_GE(f16->bytes(), f16->saved_row_bytes() * n_all_rows);
    EXPECT_EQ(new_store(CacheType::f32, KvLayout::rows)->saved_row_bytes(), n_values * 2 * 4);
    const auto int8 = new_store(CacheType::q8_0, KvLayout::tiled_int8);
    const auto n_scales = static_cast<std::size_t>(model.config.n_kv_heads);
    EXPECT_EQ(int8->saved_row_bytes(), 2 * (n_values + 2 * n_scales));
    EXPECT_GE(int8->bytes(), int8->saved_row_bytes() * n_all_rows);
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

TEST(Sequence, RestoredRowsContinueLikeTheOriginal) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    for (const ForwardOptions& options : all_layouts()) {
        ForwardRig original(model, options);
        original.feed(random_tokens(33, model.config.n_vocab, 1));
        ForwardRig restored(model, options);
        std::vector<std::byte> rows(original.cache.saved_row_bytes() * 33);
        ASSERT_TRUE(restored.cache.reserve(33));
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

TEST(Sequence, CopiedRowEqualsItsSourceAndOthersStay) {
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
TEST(Sequence, FirstRowsOfEveryLayerAreTogetherForOurKernel) {
    LoadedModel model(tiny_model());
    for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
        const GgmlKvStore cache(model.config, all_layers(model),
                                {.types = {type, type},
                                 .layout = layout_for(AttentionPath::kernel, type),
                                 .pages = {.page_rows = 256, .n_pages = 4}});
        const auto* begin = static_cast<const std::byte*>(cache.tensors(0).keys->data);
        for (int layer = 0; layer < model.config.n_layers; ++layer) {
            const KvTensors tensors = cache.tensors(layer);
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

}  // namespace
}  // namespace knap::test::ggml_kv_store_test
