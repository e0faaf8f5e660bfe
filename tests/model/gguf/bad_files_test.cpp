// Whatever a file contains, loading it gives a model or a one-line error about the file.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "llama-cpp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "knap/types.h"

#include "device/backend.h"
#include "device/ggml_log.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab_check.h"
#include "model/weights.h"
#include "support/gguf_edit.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::bad_files_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Loads like every model, including libllama's reading of the vocabulary, which aborts on anything
// that the earlier checks should have refused.
void load(const std::filesystem::path& path) {
    static Backend backend(1);
    const GgufFile file = GgufFile::open(path);
    const ModelConfig config = read_config(file);
    check_vocabulary(file);
    Weights::load(file, config, backend, {}, {});
    install_ggml_log();
    llama_model_params parameters = llama_model_default_params();
    parameters.vocab_only = true;
    const llama_model_ptr model(llama_model_load_from_file(path.c_str(), parameters));
    if (model != nullptr) {
        std::vector<llama_token> tokens(64);
        llama_tokenize(llama_model_get_vocab(model.get()), "t1 t2\nx", 7, tokens.data(),
                       static_cast<std::int32_t>(tokens.size()), true, true);
    }
}

// The error, or nullopt when the file was loaded.
std::optional<std::string> refusal_of(const std::filesystem::path& path) {
    try {
        load(path);
    } catch (const Error& error) {
        return error.what();
    }
    return std::nullopt;
}

void expect_one_line(const std::string& message) {
    EXPECT_THAT(message, HasSubstr("bad.gguf"));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
}

std::string expect_refused(const std::vector<std::byte>& bytes) {
    const std::optional<std::string> refusal = refusal_of(write_bytes("bad.gguf", bytes));
    EXPECT_TRUE(refusal.has_value()) << "the file was loaded";
    expect_one_line(refusal.value_or("bad.gguf"));
    return refusal.value_or("");
}

const std::vector<std::byte>& good_bytes() {
    static const std::vector<std::byte> bytes =
        TinyGguf("llama", {.n_layers = 1}, GGML_TYPE_Q8_0).bytes();
    return bytes;
}

std::vector<GgufField> fields_of(FieldKind kind) {
    std::vector<GgufField> fields = lay_out(good_bytes()).fields;
    std::erase_if(fields, [&](const GgufField& field) { return field.kind != kind; });
    return fields;
}

std::uint64_t value_of(const GgufField& field) {
    std::uint64_t value = 0;
    std::memcpy(&value, good_bytes().data() + field.offset, field.size);
    return value;
}

// Puts each value into each field of a kind, one at a time. Every such file must be refused.
void expect_each_refused(FieldKind kind, const std::vector<std::uint64_t>& values) {
    const std::vector<GgufField> fields = fields_of(kind);
    ASSERT_FALSE(fields.empty());
    for (const GgufField& field : fields) {
        for (const std::uint64_t value : values) {
            SCOPED_TRACE(field.where + " at " + std::to_string(field.offset) + " = " +
                         std::to_string(value));
            expect_refused(with_value(good_bytes(), field, value));
        }
    }
}

constexpr std::uint64_t kHuge[] = {1ull << 31,       1ull << 32, 1ull << 61,
                                   (1ull << 63) - 1, 1ull << 63, ~0ull};

std::vector<std::uint64_t> huge_and(std::initializer_list<std::uint64_t> others) {
    std::vector<std::uint64_t> values(std::begin(kHuge), std::end(kHuge));
    values.insert(values.end(), others);
    return values;
}

TEST(BadFiles, TheGoodFileLoads) {
    EXPECT_EQ(refusal_of(write_bytes("good.gguf", good_bytes())), std::nullopt);
}

TEST(BadFiles, NoSuchFile) {
    EXPECT_THAT(refusal_of("no/such/bad.gguf").value(),
                HasSubstr("no/such/bad.gguf: cannot be opened: No such file"));
}

TEST(BadFiles, Directory) {
    const std::filesystem::path path = temporary_folder() / "folder-bad.gguf";
    std::filesystem::create_directory(path);
    EXPECT_THAT(refusal_of(path).value(), HasSubstr("expected a GGUF file, found a directory"));
}

TEST(BadFiles, DoesNotWaitForAPipe) {
    const std::filesystem::path path = temporary_folder() / "pipe-bad.gguf";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(refusal_of(path).value(), HasSubstr("not a regular file"));
}

TEST(BadFiles, Empty) {
    EXPECT_THAT(expect_refused({}), HasSubstr("found an empty file"));
}

TEST(BadFiles, Text) {
    const std::string text = "Once upon a time there was a model.\nIt was not here.\n";
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    EXPECT_THAT(expect_refused(bytes), HasSubstr("does not begin with GGUF"));
}

TEST(BadFiles, TruncatedAnywhere) {
    const GgufLayout layout = lay_out(good_bytes());
    std::vector<std::size_t> sizes;
    for (const GgufField& field : layout.fields) {  // before, inside and at the end of every field
        sizes.insert(sizes.end(),
                     {field.offset, field.offset + field.size / 2, field.offset + field.size});
    }
    for (std::size_t at = layout.header_end; at <= layout.data_begin; ++at) {  // in the padding
        sizes.push_back(at);
    }
    const GgufFile file = GgufFile::open(write_bytes("good.gguf", good_bytes()));
    for (const TensorInfo& tensor : file.tensors()) {  // in the data of every tensor
        sizes.insert(sizes.end(),
                     {tensor.offset, tensor.offset + 1, tensor.offset + tensor.n_bytes / 2,
                      tensor.offset + tensor.n_bytes - 1});
    }
    for (const std::size_t size : sizes) {
        ASSERT_LT(size, good_bytes().size());
        SCOPED_TRACE(size);
        expect_refused(
            {good_bytes().begin(), good_bytes().begin() + static_cast<std::ptrdiff_t>(size)});
    }
}

TEST(BadFiles, OtherVersions) {
    for (const std::uint64_t version : {0u, 1u, 4u, 0x03000000u, 0xffffffffu}) {
        EXPECT_THAT(
            expect_refused(with_value(good_bytes(), fields_of(FieldKind::version)[0], version)),
            HasSubstr("expected GGUF version 2 to 3, found " + std::to_string(version)));
    }
}

TEST(BadFiles, WrongCounts) {
    for (const FieldKind kind : {FieldKind::tensor_count, FieldKind::key_count}) {
        const std::uint64_t real = value_of(fields_of(kind)[0]);
        expect_each_refused(kind, huge_and({0, real - 1, real + 1, 65536}));
    }
    for (const GgufField& field : fields_of(FieldKind::element_count)) {
        const std::uint64_t real = value_of(field);
        for (const std::uint64_t value : huge_and({0, real - 1, real + 1, 1u << 22, 1u << 30})) {
            SCOPED_TRACE(field.where + " = " + std::to_string(value));
            expect_refused(with_value(good_bytes(), field, value));
        }
    }
}

TEST(BadFiles, WrongLengths) {
    expect_each_refused(FieldKind::string_length, huge_and({100000}));
}

TEST(BadFiles, UnknownValueTypes) {
    expect_each_refused(FieldKind::value_type, {13, 255, 0x80000000u, 0xffffffffu});
    expect_each_refused(FieldKind::element_type, {9, 13, 255, 0x80000000u, 0xffffffffu});
}

TEST(BadFiles, WrongDimensions) {
    expect_each_refused(FieldKind::dimension_count, {0, 5, 100, 0xffffffffu});
    expect_each_refused(FieldKind::dimension, huge_and({0, 1, 33, 1ull << 58, 1ull << 59}));
}

// Two dimensions whose product, or its size in bytes, wraps around to a small number.
TEST(BadFiles, DimensionsWhoseProductOverflows) {
    const std::vector<GgufField> fields = fields_of(FieldKind::dimension);
    const auto first =
        std::adjacent_find(fields.begin(), fields.end(),
                           [](const auto& a, const auto& b) { return a.where == b.where; });
    ASSERT_NE(first, fields.end());
    const std::pair<std::uint64_t, std::uint64_t> products[] = {
        {1ull << 32, 1ull << 32}, {1ull << 32, 1ull << 31}, {1ull << 62, 4},
        {1ull << 60, 8},          {1ull << 58, 32},         {(1ull << 63) - 32, 1}};
    for (const auto& [columns, rows] : products) {
        SCOPED_TRACE(columns);
        expect_refused(with_value(with_value(good_bytes(), first[0], columns), first[1], rows));
    }
}

TEST(BadFiles, InvalidTensorTypes) {
    // Removed types, activations, integers, and numbers that never were a type.
    expect_each_refused(FieldKind::tensor_type,
                        {4, 5, 15, 24, 26, 28, 31, 36, 43, 1000, 0xffffffffu});
}

TEST(BadFiles, WrongOffsets) {
    for (const GgufField& field : fields_of(FieldKind::tensor_offset)) {
        const std::uint64_t real = value_of(field);
        for (const std::uint64_t value : huge_and({real + 1, real + 32, real - 32, ~0ull - 31})) {
            SCOPED_TRACE(field.where + " = " + std::to_string(value));
            expect_refused(with_value(good_bytes(), field, value));
        }
    }
}

TEST(BadFiles, InvalidAlignment) {
    for (const std::uint64_t alignment : {0ull, 3ull, 1ull << 31}) {
        TinyGguf tiny;
        gguf_set_val_u32(tiny.metadata(), "general.alignment", 32);
        const std::vector<std::byte> bytes = tiny.bytes();
        for (const GgufField& field : lay_out(bytes).fields) {
            if (field.where == "general.alignment" && field.kind == FieldKind::value) {
                expect_refused(with_value(bytes, field, alignment));
            }
        }
    }
}

// Every key of a valid file is read somewhere, and none makes sense as a list of strings.
TEST(BadFiles, KeysOfAnotherType) {
    const TinyGguf good;
    const std::int64_t n_keys = gguf_get_n_kv(const_cast<TinyGguf&>(good).metadata());
    const char* strings[] = {"two", "strings"};
    for (std::int64_t i = 0; i < n_keys; ++i) {
        TinyGguf tiny;
        const std::string key = gguf_get_key(tiny.metadata(), i);
        if (key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.merges") {
            gguf_set_val_bool(tiny.metadata(), key.c_str(), true);
        } else {
            gguf_set_arr_str(tiny.metadata(), key.c_str(), strings, 2);
        }
        EXPECT_THAT(expect_refused(tiny.bytes()), HasSubstr("key " + key + ": expected"));
    }
}

long peak_kib() {
    rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

// In a large file a wrong count fits easily. Trusting it would allocate gigabytes.
TEST(BadFiles, WrongCountsInLargeFilesAllocateLittle) {
    for (const GgufField& field : fields_of(FieldKind::element_count)) {
        for (const std::uint64_t count : {1ull << 22, 1ull << 26, 1ull << 29}) {
            SCOPED_TRACE(field.where + " = " + std::to_string(count));
            const std::filesystem::path path =
                write_bytes("bad.gguf", with_value(good_bytes(), field, count));
            std::filesystem::resize_file(path, std::uintmax_t{8} << 30);  // a sparse file: uses no
                                                                          // disk
            const long before_kib = peak_kib();
            const std::optional<std::string> refusal = refusal_of(path);
            ASSERT_TRUE(refusal.has_value());
            expect_one_line(*refusal);
            EXPECT_LT(peak_kib() - before_kib, 100 * 1024);
        }
    }
}

// Changes every byte of the header, one at a time. The process must survive.
TEST(BadFiles, AnyByteOfTheHeaderMayBeWrong) {
    const std::size_t header_end = lay_out(good_bytes()).header_end;
    int n_refused = 0;
    for (std::size_t at = 0; at < header_end; ++at) {
        for (const unsigned change : {0x01u, 0x80u, 0xffu, 0x0au}) {
            std::vector<std::byte> bytes = good_bytes();
            bytes[at] ^= std::byte(change);
            const std::optional<std::string> refusal = refusal_of(write_bytes("bad.gguf", bytes));
            if (refusal) {
                SCOPED_TRACE(at);
                expect_one_line(*refusal);
                ++n_refused;
            }
        }
    }
    EXPECT_GT(n_refused, static_cast<int>(header_end));  // more than one change in four
}

}  // namespace
}  // namespace knap::test::bad_files_test
