#include "tools/measure/report/bench_file.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "runtime/files/json_file.h"
#include "support/bench_example.h"
#include "support/tiny_model.h"
#include "tools/measure/report/bench_setup_json.h"
#include "tools/measure/report/bench_speedup.h"
#include "tools/peer/peer_names.h"

namespace knap::bench_file_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

std::filesystem::path save(const BenchReport& report) {
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, to_json(report));
    return path;
}

// Writes a report with `value` as the member at `place`.
std::filesystem::path save_with(const char* place, const json& value) {
    json object = to_json(test::example_report());
    object[json::json_pointer(place)] = value;
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, object);
    return path;
}

TEST(BenchFile, RoundTrips) {
    BenchReport report = test::example_report();
    BenchSettings& settings = report.settings;
    settings.limit = 3;
    settings.skip = 2;
    settings.parallel = 4;
    settings.max_prompt_tokens = 4096;
    settings.depths = {0, 512};
    settings.adapter = "kangaroo.gguf";
    settings.sampling = {
        .temperature = 0.7f, .top_k = 50, .top_p = 0.9f, .min_p = 0.1f, .seed = ~std::uint64_t{0}};
    settings.assume_acceptance = 0.8;
    settings.peers = {"llama", "ngram-mod"};
    settings.exact = false;
    settings.fresh_strategies = true;
    settings.profile = false;
    settings.memory = true;
    report.skipped = {{"data.jsonl:3", "it is too short"}};
    report.loads = {test::example_load("autoregressive"), test::example_load()};
    report.loads[0].throughput = {.mean = 1};
    report.loads[0].n_identical = std::nullopt;
    report.loads[1].is_projection = true;
    EXPECT_EQ(load_report(save(report)), report);
}

TEST(BenchFile, UnknownValuesRoundTrip) {
    BenchReport report = test::example_report();
    report.memory_gb_per_second = std::nullopt;
    report.is_complete = false;
    report.costs.clear();
    EXPECT_EQ(load_report(save(report)), report);
}

// Files from before the first prompts could be left out.
TEST(BenchFile, AFileThatDoesNotSayWhatItSkippedBeganAtTheFirstPrompt) {
    const BenchReport report = test::example_report();
    json settings = to_json(report)["settings"];
    settings.erase("skip");
    EXPECT_EQ(load_rows(save_with("/settings", settings), report).rows, report.rows);
}

// Files from before prompts could be served at once.
TEST(BenchFile, AFileWithoutLoadsHasOneSession) {
    const BenchReport report = test::example_report();
    json object = to_json(report);
    object.erase("loads");
    object["settings"].erase("parallel");
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, object);
    EXPECT_EQ(load_report(path), report);
    EXPECT_EQ(load_report(path).settings.parallel, 1);
    EXPECT_EQ(load_rows(path, report).rows, report.rows) << "it can be continued";
}

TEST(BenchFile, AFileWithoutPeersTextsHasNoneCompared) {
    const BenchReport report = test::example_report();
    json object = to_json(report);
    for (json& row : object["rows"]) {
        row.erase("identical_to_libllama");
        row.erase("identical_to_knap");
    }
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, object);
    EXPECT_EQ(load_report(path), report);
}

TEST(BenchFile, PeersAreOneTextOrNull) {
    BenchReport report = test::example_report();
    report.settings.peers = {"llama", "ngram-mod"};
    EXPECT_EQ(to_json(report)["settings"]["peer"], "llama,ngram-mod");
    EXPECT_EQ(load_report(save_with("/settings/peer", "llama")).settings.peers,
              std::vector<std::string>{"llama"})
        << "as older files have it";
}

TEST(BenchFile, IgnoresUnknownMembers) {
    EXPECT_EQ(load_report(save_with("/weather", "fine")), test::example_report());
    EXPECT_EQ(load_report(save_with("/rows/0/weather", "fine")), test::example_report());
    EXPECT_EQ(load_report(save_with("/settings/weather", "fine")), test::example_report());
}

// The wide interval of two very different turns, and a remainder that rounding made negative.
TEST(BenchFile, AcceptsUnusualNumbers) {
    BenchReport report = test::example_report();
    report.rows[0].speedup.high = 1e200;
    report.rows[1].turns[0].other_ms = -1e-14;
    EXPECT_EQ(load_report(save(report)), report);
}

struct BadMember {
    const char* place;
    json value;
    const char* message;
};

TEST(BenchFile, ErrorsNameThePathAndTheMember) {
    const BadMember cases[] = {
        {"/host/isa", 1, "host: expected a text `isa`, found number"},
        {"/model/n_embd", 0, "model: expected `n_embd` from 1 to"},
        {"/settings/seed", -1, "settings: expected a whole number `seed`, found number"},
        {"/settings/depths", {512, 0.5}, "settings: depths 2: expected a number of tokens"},
        {"/settings/peer", "llama,ours",
         "settings: expected `peer` null or a list of llama|ngram-simple|ngram-map-k|ngram-map-k4v|"
         "ngram-mod|ngram-cache, found 'llama,ours'"},
        {"/settings/assume_acceptance", 1.5, "settings: expected `assume_acceptance` from 0 to 1"},
        {"/costs/0/plan", "a7=skip", "cost 1: `plan`: "},
        {"/skipped", {{{"where", "x"}}}, "skipped prompt 1: expected a text `why`, found none"},
        {"/rows/1/turns", json::array(), "row 2: expected at least one of `turns`, found none"},
        {"/rows/1/turns/1/n_generated", 0, "row 2: turn 2: expected `n_generated` from 1 to"},
        {"/rows/1/tokens_per_second", 0, "row 2: expected `tokens_per_second` from"},
        {"/rows/1/request_speedup/mean", 0, "row 2: request_speedup: expected `mean` from"},
        {"/settings/parallel", 0, "settings: expected `parallel` from 1 to"},
        {"/loads", {{{"strategy", 1}}}, "load 1: expected a text `strategy`, found number"},
        {"/rows/1/first_difference",
         {{"gap", 1}},
         "row 2: first_difference: expected a whole number `position`, found none"},
    };
    for (const BadMember& bad : cases) {
        const auto path = save_with(bad.place, bad.value);
        EXPECT_THAT([&] { load_report(path); },
                    ThrowsMessage<Error>(StartsWith(concat(path.string(), ": ", bad.message))))
            << bad.place;
    }
}

TEST(BenchFile, ErrorsNameTheMemberOfALoad) {
    BenchReport report = test::example_report();
    report.loads = {test::example_load()};
    const json object = to_json(report);
    const std::pair<const char*, const char*> cases[] = {
        {"/loads/0/turns", "load 1: expected at least one of `turns`, found none"},
        {"/loads/0/turns/1/wall_ms", "load 1: turn 2: expected a number `wall_ms`"},
        {"/loads/0/throughput", "load 1: expected an object `throughput`"},
        {"/loads/0/n_prompts", "load 1: expected a whole number `n_prompts`"},
    };
    for (const auto& [place, message] : cases) {
        json bad = object;
        bad[json::json_pointer(place)] = json::array();
        const auto path = temporary_folder() / "bench_file.json";
        write_json_file(path, bad);
        EXPECT_THAT([&] { load_report(path); }, ThrowsMessage<Error>(HasSubstr(message)));
    }
}

TEST(BenchFile, ErrorsNameMissingMembers) {
    for (const char* part : {"host", "model", "settings"}) {
        const json object = to_json(test::example_report());
        for (const auto& [name, _] : object[part].items()) {
            constexpr const char* kNewer[] = {"exact",  "fresh_strategies", "profile",
                                              "memory", "parallel",         "skip"};
            if (std::ranges::find(kNewer, name) != std::end(kNewer)) {
                continue;
            }
            json lacking = object[part];
            lacking.erase(name);
            const auto path = save_with(concat("/", part).c_str(), lacking);
            EXPECT_THAT([&] { load_report(path); },
                        ThrowsMessage<Error>(AllOf(HasSubstr(concat(": ", part, ": expected ")),
                                                   HasSubstr(concat("`", name, "`, found none")))))
                << name;
        }
    }
}

TEST(BenchFile, NewerSettingsMayBeMissing) {
    BenchReport report = test::example_report();
    report.settings.profile = true;
    report.settings.memory = false;
    const std::pair<const char*, std::optional<bool> BenchSettings::*> newer[] = {
        {"exact", &BenchSettings::exact},
        {"fresh_strategies", &BenchSettings::fresh_strategies},
        {"profile", &BenchSettings::profile},
        {"memory", &BenchSettings::memory}};
    for (const auto& [name, member] : newer) {
        json settings = to_json(report)["settings"];
        settings.erase(name);
        const auto path = save_with("/settings", settings);
        EXPECT_FALSE(load_report(path).settings.*member);
        EXPECT_THAT([&] { load_rows(path, report); },
                    ThrowsMessage<Error>(HasSubstr(concat("`settings.", name, "` differs"))));
    }
    EXPECT_THAT([&] { load_report(save_with("/settings/exact", "on")); },
                ThrowsMessage<Error>(HasSubstr("`exact`")));
}

// libllama's row has its own prefill time, which is compared with plain decoding's.
TEST(BenchFile, ComputesRequestSpeedupsOfOlderFiles) {
    BenchReport report = test::example_report();
    report.rows[1].strategy = kPlainPeer;
    report.rows[1].prefill_ms = 200;
    for (BenchRow& row : report.rows) {
        const double plain_ms = row.strategy == kPlainPeer ? 12.5 : row.prefill_ms;
        row.request_speedup = request_speedup_of(row.turns, row.prefill_ms, plain_ms);
    }
    json object = to_json(report);
    for (json& row : object["rows"]) {
        row.erase("request_speedup");
    }
    const auto path = temporary_folder() / "bench_file.json";
    write_json_file(path, object);
    EXPECT_EQ(load_report(path), report);
    object["rows"].erase(0);
    write_json_file(path, object);
    EXPECT_EQ(load_report(path).rows[0].request_speedup,
              request_speedup_of(report.rows[1].turns, 200, 200))
        << "without a row of plain decoding";
}

TEST(BenchFile, CanBeResumedWithoutRows) {
    BenchReport report = test::example_report();
    report.rows.clear();
    EXPECT_TRUE(load_rows(save(report), report).rows.empty());
}

TEST(BenchFile, RowsRoundTrip) {
    BenchReport report = test::example_report();
    BenchRow& unknown = report.rows.front();
    unknown.depth = 512;
    unknown.speedup = {.mean = 1.0 / 3};
    unknown.request_speedup = {.mean = 2.0 / 3};
    unknown.acceptance_rate = std::nullopt;
    unknown.bandwidth_gb_per_second = std::nullopt;
    unknown.predicted = std::nullopt;
    unknown.measured = std::nullopt;
    unknown.first_difference = std::nullopt;
    unknown.is_projection = true;
    report.rows[1].first_difference->gap = std::nullopt;
    report.rows[1].identical_to_libllama = true;
    report.rows[1].identical_to_knap = false;
    const EarlierRows found = load_rows(save(report), report);
    EXPECT_EQ(found.rows, report.rows);
    EXPECT_EQ(found.memory_gb_per_second, 30.5);
}

TEST(BenchFile, UnknownValuesAreNull) {
    BenchReport report = test::example_report();
    report.memory_gb_per_second = std::nullopt;
    report.rows = {{.strategy = "llama"}};
    const json object = to_json(report);
    for (const char* name :
         {"depth", "acceptance_rate", "bandwidth_gb_per_second", "predicted", "measured",
          "first_difference", "identical_to_libllama", "identical_to_knap"}) {
        EXPECT_TRUE(object["rows"][0].contains(name)) << name;
        EXPECT_TRUE(object["rows"][0][name].is_null()) << name;
    }
    EXPECT_TRUE(object["rows"][0]["speedup"]["low"].is_null());
    EXPECT_TRUE(object["memory_gb_per_second"].is_null());
    EXPECT_TRUE(object["settings"]["adapter"].is_null());
    EXPECT_TRUE(object["settings"]["assume_acceptance"].is_null());
    EXPECT_TRUE(object["settings"]["peer"].is_null());
}

TEST(BenchFile, SettingsKeepTheGivenNumbers) {
    EXPECT_EQ(to_json(BenchSettings{})["top_p"].dump(), "0.95");
}

TEST(BenchFile, RefusesFilesOfAnotherBenchmark) {
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

TEST(BenchFile, RefusesDamagedFiles) {
    const BenchReport report = test::example_report();
    EXPECT_THAT([&] { load_rows(temporary_folder() / "none.json", report); },
                ThrowsMessage<Error>(HasSubstr("found no such file")));
    const auto path = save_with("/rows/1/rounds", nullptr);
    EXPECT_THAT([&] { load_rows(path, report); },
                ThrowsMessage<Error>(
                    StartsWith(concat("--resume: cannot continue the benchmark in ", path.string(),
                                      ": row 2: expected a whole number `rounds`, found null"))));
}

}  // namespace
}  // namespace knap::bench_file_test
