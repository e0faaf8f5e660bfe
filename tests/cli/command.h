// Helpers that run knap on a tiny model.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/process.h"
#include "support/tiny_model.h"

namespace knap {

using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// One thread, because tests may run in parallel on few cores.
inline Words on_tiny_model(const std::string& command) {
    return {command, "-m", tiny_model().string(), "-t", "1"};
}

inline ProcessResult run_tiny(const Words& flags) {
    return run_knap(on_tiny_model("run") + flags);
}

// Runs `knap run --json` on a tiny model and returns its object. Eight tokens unless `flags` say
// otherwise.
inline nlohmann::json run_json(const Words& flags) {
    const auto result = run_tiny(Words{"--json", "-n", "8"} + flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
}

// Fails the test unless the object is plain decoding's: the strategy is named, nothing was drafted,
// and every token after the first took one round. As support/baseline.h, for a process.
inline void expect_plain_decoding(const nlohmann::json& object) {
    EXPECT_EQ(object["strategy"], "autoregressive") << "the baseline must be plain decoding";
    EXPECT_EQ(object["n_drafted"], 0) << "the baseline drafted";
    const int n_emitted = object["n_generated"].get<int>() + (object["stop"] == "eos" ? 1 : 0);
    EXPECT_EQ(object["rounds"], std::max(0, n_emitted - 1))
        << "one round per token after the first";
}

// run_json() with plain decoding, checked: the baseline of comparisons between processes.
inline nlohmann::json plain_json(const Words& flags) {
    nlohmann::json object = run_json(flags + Words{"--strategy", "autoregressive"});
    expect_plain_decoding(object);
    return object;
}

// An error is one line that starts with "knap: error: ", and nothing on standard output.
inline void expect_error(const ProcessResult& result, int exit_code, const std::string& text) {
    EXPECT_EQ(result.exit_code, exit_code) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, testing::StartsWith("knap: error: "));
    EXPECT_THAT(result.error, testing::HasSubstr(text));
    EXPECT_EQ(result.error.find('\n'), result.error.size() - 1) << result.error;
}

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path write_text(const std::string& name, const std::string& text) {
    auto path = temporary_folder() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

// A path in the temporary folder where no file exists.
inline std::string fresh_file(const std::string& name) {
    const auto path = temporary_folder() / name;
    std::filesystem::remove(path);
    return path.string();
}

inline nlohmann::json read_json(const std::string& path) {
    return nlohmann::json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
}

// The number of occurrences of `part` in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++n;
    }
    return n;
}

// The tiny model with every `from` in its file replaced by `to`, which has the same length.
inline std::filesystem::path patched_model(const std::string& name,
                                           const std::string& from,
                                           const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = read_text(tiny_model());
    std::size_t n_replaced = 0;
    for (auto at = bytes.find(from); at != std::string::npos;
         at = bytes.find(from, at + to.size())) {
        bytes.replace(at, from.size(), to);
        ++n_replaced;
    }
    EXPECT_GT(n_replaced, 0u);
    return write_text(name, bytes);
}

}  // namespace knap
