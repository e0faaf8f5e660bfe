#include "measure/bench_file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/bench_row_json.h"
#include "runtime/json_file.h"
#include "support/bench_example.h"
#include "support/tiny_model.h"

namespace knap {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::filesystem::path save(const BenchReport& report) {
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, to_json(report));
    return path;
}

TEST(BenchFile, RowsComeBackAsTheyWere) {
    BenchReport report = test::example_report();
    BenchRow& unknown = report.rows.front();
    unknown.depth = 512;
    unknown.speedup = {.mean = 1.0 / 3};
    unknown.acceptance_rate = std::nullopt;
    unknown.bandwidth_gb_per_second = std::nullopt;
    unknown.predicted = std::nullopt;
    unknown.measured = std::nullopt;
    unknown.first_difference = std::nullopt;
    unknown.is_projection = true;
    report.rows[1].first_difference->gap = std::nullopt;
    const EarlierRows found = load_rows(save(report), report);
    EXPECT_EQ(found.rows, report.rows);
    EXPECT_EQ(found.memory_gb_per_second, 30.5);
}

TEST(BenchFile, WhatIsNotKnownIsNull) {
    BenchReport report = test::example_report();
    report.memory_gb_per_second = std::nullopt;
    report.rows = {{.strategy = "llama"}};
    const json object = to_json(report);
    for (const char* name : {"depth", "acceptance_rate", "bandwidth_gb_per_second", "predicted",
                             "measured", "first_difference"}) {
        EXPECT_TRUE(object["rows"][0].contains(name)) << name;
        EXPECT_TRUE(object["rows"][0][name].is_null()) << name;
    }
    EXPECT_TRUE(object["rows"][0]["speedup"]["low"].is_null());
    EXPECT_TRUE(object["memory_gb_per_second"].is_null());
    EXPECT_TRUE(object["settings"]["adapter"].is_null());
    EXPECT_TRUE(object["settings"]["assume_acceptance"].is_null());
    EXPECT_TRUE(object["settings"]["peer"].is_null());
}

TEST(BenchFile, NumbersOfSettingsAreAsGiven) {
    EXPECT_EQ(to_json(BenchSettings{})["top_p"].dump(), "0.95");
}

TEST(BenchFile, OfAnotherBenchmarkIsRefused) {
    const BenchReport report = test::example_report();
    const auto path = save(report);
    BenchReport other = report;
    other.settings.n_predict = 9;
    EXPECT_THAT(
        [&] { load_rows(path, other); },
        ThrowsMessage<Error>(HasSubstr("`settings.n_predict` differs: expected '9', found '8'")));
    other = report;
    other.model.fingerprint = "beef";
    EXPECT_THAT([&] { load_rows(path, other); },
                ThrowsMessage<Error>(HasSubstr("`model.fingerprint` differs")));
    other = report;
    other.device = "another";
    EXPECT_THAT([&] { load_rows(path, other); },
                ThrowsMessage<Error>(HasSubstr("`device` differs")));
}

TEST(BenchFile, ThatIsDamagedIsRefused) {
    const BenchReport report = test::example_report();
    EXPECT_THAT([&] { load_rows(temporary_folder() / "none.json", report); },
                ThrowsMessage<Error>(HasSubstr("found no such file")));
    json object = to_json(report);
    object["rows"][1].erase("rounds");
    const auto path = temporary_folder() / "damaged.json";
    std::ofstream(path) << object.dump();
    EXPECT_THAT([&] { load_rows(path, report); },
                ThrowsMessage<Error>(HasSubstr("expected a whole number `rounds`, found none")));
}

}  // namespace
}  // namespace knap
