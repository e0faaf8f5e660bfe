#include "model/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::gguf_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(GgufFile, ReadsEveryKindOfValue) {
    TinyGguf tiny;
    const std::int16_t numbers[] = {3, 1, 2};
    gguf_set_val_i8(tiny.metadata(), "test.i8", 5);
    gguf_set_val_u64(tiny.metadata(), "test.u64", ~std::uint64_t{0});
    gguf_set_val_f64(tiny.metadata(), "test.f64", -0.5);
    gguf_set_val_i32(tiny.metadata(), "test.negative", -7);
    gguf_set_val_bool(tiny.metadata(), "test.bool", true);
    gguf_set_arr_data(tiny.metadata(), "test.array", GGUF_TYPE_INT16, numbers, 3);
    const GgufFile file = GgufFile::open(write_tiny(tiny, "kinds.gguf"));

    EXPECT_EQ(file.string("general.name"), "tiny");
    EXPECT_EQ(file.integer("test.i8"), 5u);
    EXPECT_EQ(file.integer("test.u64"), ~std::uint64_t{0});
    EXPECT_EQ(file.number("test.f64"), -0.5);
    EXPECT_EQ(file.number("test.negative"), -7.0);
    EXPECT_EQ(file.boolean("test.bool"), true);
    EXPECT_TRUE(file.is_array("test.array"));
    EXPECT_FALSE(file.is_array("test.bool"));
    EXPECT_EQ(file.array_size("test.array"), 3u);
    EXPECT_THAT(file.integers("test.array").value(), ElementsAre(3u, 1u, 2u));
    EXPECT_EQ(file.array_size("tokenizer.ggml.tokens"), 24u);
}

TEST(GgufFile, AbsentKeysGiveNullopt) {
    const GgufFile file = GgufFile::open(write_tiny(TinyGguf(), "absent.gguf"));
    EXPECT_EQ(file.string("test.none"), std::nullopt);
    EXPECT_EQ(file.integer("test.none"), std::nullopt);
    EXPECT_EQ(file.number("test.none"), std::nullopt);
    EXPECT_EQ(file.boolean("test.none"), std::nullopt);
    EXPECT_EQ(file.array_size("test.none"), std::nullopt);
    EXPECT_EQ(file.integers("test.none"), std::nullopt);
    EXPECT_FALSE(file.is_array("test.none"));
    EXPECT_EQ(file.find("test.none"), nullptr);
}

TEST(GgufFile, WrongTypesNameFileKeyExpectedAndFound) {
    TinyGguf tiny;
    const float numbers[] = {1.0f};
    gguf_set_val_f32(tiny.metadata(), "test.f32", 1.0f);
    gguf_set_val_i32(tiny.metadata(), "test.negative", -7);
    gguf_set_arr_data(tiny.metadata(), "test.floats", GGUF_TYPE_FLOAT32, numbers, 1);
    const GgufFile file = GgufFile::open(write_tiny(tiny, "types.gguf"));

    const std::string prefix = file.path().string() + ": key ";
    EXPECT_EQ(error_of([&] { file.string("test.f32"); }),
              prefix + "test.f32: expected a string, found f32");
    EXPECT_EQ(error_of([&] { file.integer("test.f32"); }),
              prefix + "test.f32: expected an integer, found f32");
    EXPECT_EQ(error_of([&] { file.integer("test.negative"); }),
              prefix + "test.negative: expected 0 or more, found -7");
    EXPECT_EQ(error_of([&] { file.number("general.name"); }),
              prefix + "general.name: expected a number, found str");
    EXPECT_EQ(error_of([&] { file.boolean("test.f32"); }),
              prefix + "test.f32: expected a bool, found f32");
    EXPECT_EQ(error_of([&] { file.array_size("test.f32"); }),
              prefix + "test.f32: expected an array, found f32");
    EXPECT_EQ(error_of([&] { file.integers("test.floats"); }),
              prefix + "test.floats: expected an array of integers, found an array of f32");
    EXPECT_EQ(error_of([&] { file.string("tokenizer.ggml.tokens"); }),
              prefix + "tokenizer.ggml.tokens: expected a string, found an array of str");
}

TEST(GgufFile, TensorsPointAtTheirBytes) {
    const TinyGguf tiny;
    const std::filesystem::path path = write_tiny(tiny, "tensors.gguf");
    const GgufFile file = GgufFile::open(path);
    const std::vector<std::byte> bytes = read_bytes(path);

    ASSERT_EQ(file.mappings().size(), 1u);
    EXPECT_EQ(file.total_bytes(), bytes.size());
    EXPECT_EQ(file.tensors().size(), 21u);
    const TensorInfo* tensor = file.find("blk.1.attn_k.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->type, GGML_TYPE_F32);
    EXPECT_THAT(tensor->ne, ElementsAre(32, 16, 1, 1));
    EXPECT_EQ(tensor->n_bytes, 32u * 16u * sizeof(float));
    EXPECT_EQ(tensor->data, file.mappings()[0].data() + tensor->offset);
    EXPECT_TRUE(std::equal(tensor->data, tensor->data + tensor->n_bytes, &bytes[tensor->offset]));
}

TEST(GgufFile, StaysValidWhenMoved) {
    GgufFile file = GgufFile::open(write_tiny(TinyGguf(), "moved.gguf"));
    const TensorInfo* tensor = file.find("output_norm.weight");
    const GgufFile other = std::move(file);
    EXPECT_EQ(other.find("output_norm.weight"), tensor);
    EXPECT_EQ(other.string("general.name"), "tiny");
}

// A model in two parts: the first has the embedding and the head, the second the layers.
class SplitGgufFile : public ::testing::Test {
  protected:
    SplitGgufFile() {
        std::vector<TinyTensor> all = first_.tensors();
        first_.tensors().assign(all.begin(), all.begin() + 3);
        second_.tensors().assign(all.begin() + 3, all.end());
        number(first_, 0);
        number(second_, 1);
    }

    static void number(TinyGguf& part, std::uint16_t no) {
        gguf_set_val_u16(part.metadata(), "split.no", no);
        gguf_set_val_u16(part.metadata(), "split.count", 2);
        gguf_set_val_i32(part.metadata(), "split.tensors.count", 21);
    }

    // Writes both into a fresh folder and returns the path of the first.
    std::filesystem::path write_parts() {
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directory(folder_);
        first_.write(folder_ / "model-00001-of-00002.gguf");
        second_.write(folder_ / "model-00002-of-00002.gguf");
        return folder_ / "model-00001-of-00002.gguf";
    }

    std::filesystem::path folder_ = temporary_folder() / "split";
    TinyGguf first_;
    TinyGguf second_;
};

TEST_F(SplitGgufFile, HasTheTensorsOfAllParts) {
    const GgufFile file = GgufFile::open(write_parts());
    ASSERT_EQ(file.mappings().size(), 2u);
    EXPECT_EQ(file.tensors().size(), 21u);
    EXPECT_EQ(file.find("output.weight")->part, 0u);
    const TensorInfo* tensor = file.find("blk.0.attn_q.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->part, 1u);
    EXPECT_EQ(tensor->data, file.mappings()[1].data() + tensor->offset);
    EXPECT_EQ(file.total_bytes(), file.mappings()[0].size() + file.mappings()[1].size());
}

TEST_F(SplitGgufFile, MissingPartIsNamed) {
    const std::filesystem::path path = write_parts();
    std::filesystem::remove(folder_ / "model-00002-of-00002.gguf");
    EXPECT_THAT(error_of([&] { GgufFile::open(path); }),
                HasSubstr("part 2 of 2 is missing: expected " +
                          (folder_ / "model-00002-of-00002.gguf").string()));
}

TEST_F(SplitGgufFile, LaterPartNamesTheFirst) {
    write_parts();
    EXPECT_THAT(error_of([&] { GgufFile::open(folder_ / "model-00002-of-00002.gguf"); }),
                HasSubstr("part 2 of 2: open the first part instead, " +
                          (folder_ / "model-00001-of-00002.gguf").string()));
}

TEST_F(SplitGgufFile, RenamedPartSaysWhichNameIsExpected) {
    const std::filesystem::path path = write_parts();
    std::filesystem::rename(path, folder_ / "renamed.gguf");
    EXPECT_THAT(error_of([&] { GgufFile::open(folder_ / "renamed.gguf"); }),
                HasSubstr("expected a file name that ends in -0000K-of-0000N.gguf with N = 2"));
}

TEST_F(SplitGgufFile, PartsOutOfOrderAreRefused) {
    gguf_set_val_u16(second_.metadata(), "split.no", 0);
    EXPECT_THAT(error_of([&] { GgufFile::open(write_parts()); }),
                HasSubstr("expected part 2 of 2, found part 1 of 2"));
}

TEST_F(SplitGgufFile, PartNumberOfAnotherTypeIsRefused) {
    gguf_set_val_i32(second_.metadata(), "split.no", 1);
    EXPECT_THAT(error_of([&] { GgufFile::open(write_parts()); }),
                HasSubstr("key split.no: expected u16, found i32"));
}

TEST_F(SplitGgufFile, TensorInTwoPartsIsRefused) {
    second_.tensors().push_back(first_.tensor("output.weight"));
    EXPECT_THAT(error_of([&] { GgufFile::open(write_parts()); }),
                HasSubstr("tensor 'output.weight' appears twice"));
}

TEST_F(SplitGgufFile, MissingTensorsAreCounted) {
    second_.remove_tensor("blk.1.ffn_down.weight");
    EXPECT_THAT(error_of([&] { GgufFile::open(write_parts()); }),
                HasSubstr("expected 21 tensors in 2 parts, found 20"));
}

}  // namespace
}  // namespace knap::test::gguf_file_test
