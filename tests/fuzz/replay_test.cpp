// Runs every target on its seeds, and on the inputs in crashes/ that once ended in something else
// than knap::Error.
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"

namespace knap::fuzz {

void PrintTo(const Target& target, std::ostream* out) {
    *out << target.name;
}

namespace replay_test {
namespace {

namespace fs = std::filesystem;

class FuzzTarget : public ::testing::TestWithParam<Target> {
  protected:
    FuzzTarget() {
        set_log(LogLevel::warning, [](LogLevel, std::string_view) {});
    }
    ~FuzzTarget() override { set_log(LogLevel::warning, nullptr); }
};

TEST_P(FuzzTarget, TakesItsSeeds) {
    const std::vector<std::string> seeds = GetParam().seeds();
    EXPECT_FALSE(seeds.empty());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        EXPECT_NO_THROW(GetParam().run(seeds[i])) << "seed " << i;
    }
    EXPECT_TRUE(std::ranges::any_of(seeds, [](const std::string& seed) {
        return seed.size() <= GetParam().max_bytes;
    })) << "fuzzing leaves out longer ones";
}

TEST_P(FuzzTarget, TakesWhatOnceCrashed) {
    EXPECT_NO_THROW(GetParam().run(""));
    const fs::path folder = in_repository("tests/fuzz/crashes") / GetParam().name;
    if (!fs::exists(folder)) {
        return;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        EXPECT_NO_THROW(GetParam().run(bytes_of(entry.path()))) << entry.path();
    }
}

TEST_P(FuzzTarget, HasWordsInItsSources) {
    for (const std::string_view source : GetParam().word_sources) {
        EXPECT_FALSE(string_literals(source).empty()) << source;
    }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, ::testing::ValuesIn(all_targets()), [](const auto& test) {
    return std::string(test.param.name);
});

TEST(FuzzCrashes, AreOfATarget) {
    const fs::path folder = in_repository("tests/fuzz/crashes");
    if (!fs::exists(folder)) {
        return;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(std::ranges::any_of(all_targets(), [&](const Target& target) {
            return target.name == name;
        })) << name;
    }
}

}  // namespace
}  // namespace replay_test
}  // namespace knap::fuzz
