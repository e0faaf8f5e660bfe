#include "bench/bench_json.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace knap::bench::bench_json_test {
namespace {

constexpr const char* kCommand[] = {"/opt/build/decode_bench", "models/a.gguf", "--depths", "16"};

TEST(BenchJson, HoldsEveryTimeAndWhatItWasMeasuredWith) {
    const std::filesystem::path path = temporary_folder() / "bench.json";
    const std::filesystem::path model = temporary_folder() / "a.gguf";
    std::ofstream(model) << "12345";
    BenchJson json(path, 4, kCommand);
    json.add_model(model, ModelConfig{.n_layers = 3}, Backend(1));
    json.add_row({{"what", "decode"}, {"depth", 16}},
                 {{"knap", {}, {1.23456789, 2}}, {"llama", {}, {3}}}, 4);

    const auto found = read_json_file(path).value();
    EXPECT_EQ(found["format"], 1);
    EXPECT_EQ(found["program"], "decode_bench");
    EXPECT_EQ(found["command"], "decode_bench a.gguf --depths 16") << "no folders";
    EXPECT_EQ(found["threads"], 1);
    EXPECT_EQ(found["device"], found["host"]["cpu"]);
    EXPECT_EQ(found["models"][0]["file"], "a.gguf");
    EXPECT_EQ(found["models"][0]["n_layers"], 3);
    EXPECT_EQ(found["models"][0]["file_bytes"], 5);
    const nlohmann::json expected = {{"model", "a.gguf"},
                                     {"what", "decode"},
                                     {"depth", 16},
                                     {"n_tokens", 4},
                                     {"times_ms", {{"knap", {1.2346, 2.0}}, {"llama", {3.0}}}}};
    EXPECT_EQ(found["rows"], nlohmann::json::array({expected}));
}

TEST(BenchJson, NamesADeviceThatGgmlDoesNotKnow) {
    const std::filesystem::path path = temporary_folder() / "gpu.json";
    const std::filesystem::path model = temporary_folder() / "b.gguf";
    std::ofstream(model) << "1";
    BenchJson json(path, 4, kCommand);
    json.add_model(model, ModelConfig{}, "Big GPU", 0);
    json.add_row({{"what", "pass"}}, {{"knap", {}, {1}}}, 1);
    EXPECT_EQ(read_json_file(path).value()["device"], "Big GPU");
    EXPECT_EQ(read_json_file(path).value()["threads"], 0);
}

TEST(BenchJson, WritesNothingWithoutAPath) {
    BenchJson json("", 4, kCommand);
    json.add_model("none.gguf", ModelConfig{}, Backend(1));
    EXPECT_NO_THROW(json.add_row({}, {{"knap", {}, {1}}}, 1));
}

}  // namespace
}  // namespace knap::bench::bench_json_test
