// `knap info`.
#include "cli/command.h"
#include "model/architectures/layer_text.h"
#include "model/gguf/gguf_file.h"
#include "support/tiny_adapter.h"
#include "tools/make_model/shapes.h"

namespace knap::info_test {
namespace {

using nlohmann::json;

ProcessResult info(const Words& flags = {}) {
    return run_knap(Words{"info", "-m", tiny_model().string()} + flags);
}

TEST(Info, TableDescribesTheModel) {
    const auto result = info();
    EXPECT_EQ(result.exit_code, 0) << result.error;
    for (const char* text :
         {"architecture      llama", "layers            4", "KV heads 2, head size 16", "39 F32",
          "context           1024", "chat template     chatml", "read per token"}) {
        EXPECT_THAT(result.output, testing::HasSubstr(text));
    }
}

TEST(Info, JsonCountsBytesAtTheChosenLengths) {
    const json object = json::parse(info({"--json", "--lengths", "1,100"}).output);
    EXPECT_EQ(object["architecture"], "llama");
    EXPECT_EQ(object["n_layers"], 4);
    EXPECT_EQ(object["n_heads"], 4);
    EXPECT_EQ(object["n_kv_heads"], 2);
    EXPECT_EQ(object["head_dim"], 16);
    EXPECT_EQ(object["types"]["F32"], 39);
    EXPECT_EQ(object["cuda_kernels"], "no NVIDIA GPU");
    EXPECT_EQ(object["file_bytes"], std::filesystem::file_size(tiny_model()));
    // K and V in f16, of 2 heads of 16, in 4 layers.
    EXPECT_EQ(object["cache_bytes_per_token"], 2 * 2 * 2 * 16 * 4);
    ASSERT_EQ(object["lengths"].size(), 2u);
    const json& last = object["lengths"][1];
    EXPECT_EQ(last["n_tokens"], 100);
    EXPECT_EQ(last["cache_bytes"], 100 * 512);
    EXPECT_EQ(last["read_bytes_per_token"],
              object["weight_bytes_per_token"].get<int>() + 100 * 512);
}

// Layers with a window show their own row and the 23 before it.
TEST(Info, LayersWithAWindowReadNoMoreThanItShows) {
    const std::string model = tiny_model("tiny-gpt-oss").string();
    const json object =
        json::parse(run_knap({"info", "--json", "-m", model, "--lengths", "10,100"}).output);
    const auto row_bytes = object["cache_bytes_per_token"].get<int>() / 4;
    const auto weight_bytes = object["weight_bytes_per_token"].get<int>();
    const json& lengths = object["lengths"];
    EXPECT_EQ(lengths[0]["read_bytes_per_token"], weight_bytes + 4 * 10 * row_bytes);
    EXPECT_EQ(lengths[1]["cache_bytes"], 4 * 100 * row_bytes);
    EXPECT_EQ(lengths[1]["read_bytes_per_token"], weight_bytes + (2 * 100 + 2 * 23) * row_bytes);
}

TEST(Info, TrailingCommaInLengthsIsIgnored) {
    EXPECT_EQ(json::parse(info({"--json", "--lengths", "1,100,"}).output)["lengths"].size(), 2u);
}

TEST(Info, CacheTypesChangeTheBytesPerToken) {
    const json object = json::parse(info({"--json", "-ctk", "f32", "-ctv", "f32"}).output);
    EXPECT_EQ(object["cache_bytes_per_token"], 1024);
}

TEST(Info, ReadsEveryArchitecture) {
    for (const char* shape : shapes_named("tiny-")) {
        const auto result = run_knap({"info", "--json", "-m", tiny_model(shape).string()});
        const json object = json::parse(result.output);
        EXPECT_EQ(object["architecture"], find_shape(shape).architecture);
        EXPECT_EQ(object["n_layers"], find_shape(shape).n_layers);
        EXPECT_EQ(object["layers"],
                  describe_layers(read_config(GgufFile::open(tiny_model(shape)))));
    }
}

TEST(Info, DescribesAnAdapter) {
    const auto path = test::write_tiny(test::tiny_adapter(), "info-adapter.gguf").string();
    EXPECT_THAT(info({"--adapter", path}).output,
                testing::HasSubstr("adapter           " + path +
                                   ", after layer 2, 0.0 million parameters"));
    const json object = json::parse(info({"--json", "--adapter", path}).output)["adapter"];
    EXPECT_EQ(object["path"], path);
    EXPECT_EQ(object["exit_layer"], 2);
    EXPECT_EQ(object["n_heads"], 4);
    EXPECT_EQ(object["n_parameters"], 16512);
    EXPECT_TRUE(json::parse(info({"--json"}).output)["adapter"].is_null());
}

TEST(Info, LengthsMayBeLargerThanAnyContext) {
    const json object = json::parse(info({"--json", "--lengths", "2000000000"}).output);
    EXPECT_EQ(object["lengths"][0]["cache_bytes"], 2'000'000'000LL * 512);
}

}  // namespace
}  // namespace knap::info_test
