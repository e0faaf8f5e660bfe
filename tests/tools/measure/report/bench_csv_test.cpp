#include "tools/measure/report/bench_csv.h"

#include <map>

#include <gtest/gtest.h>

#include "support/bench_example.h"

namespace knap::bench_csv_test {
namespace {

using Record = std::vector<std::string>;

// RFC 4180.
std::vector<Record> parse_csv(const std::string& text) {
    std::vector<Record> records(1, Record(1));
    bool is_quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string& field = records.back().back();
        if (text[i] == '"' && is_quoted && i + 1 < text.size() && text[i + 1] == '"') {
            field += text[++i];
        } else if (text[i] == '"') {
            is_quoted = !is_quoted;
        } else if (text[i] == ',' && !is_quoted) {
            records.back().emplace_back();
        } else if (text[i] == '\r' && !is_quoted) {
            ++i;  // a line ends in two characters
            records.emplace_back(1);
        } else {
            field += text[i];
        }
    }
    records.pop_back();  // nothing follows the last line
    return records;
}

std::map<std::string, std::string> by_name(const Record& names, const Record& values) {
    std::map<std::string, std::string> fields;
    for (std::size_t i = 0; i < names.size(); ++i) {
        fields[names[i]] = values.at(i);
    }
    return fields;
}

TEST(BenchCsv, ParsesBack) {
    const BenchReport report = test::example_report();
    const auto records = parse_csv(to_csv(report));
    ASSERT_EQ(records.size(), 5u);
    for (const Record& record : records) {
        EXPECT_EQ(record.size(), records[0].size());
    }
    auto fields = by_name(records[0], records[2]);
    EXPECT_EQ(fields.size(), records[0].size()) << "a name occurs twice";
    EXPECT_EQ(fields["task"], "qa, with \"quotes\" | bars");
    EXPECT_EQ(fields["strategy"], "lookup");
    EXPECT_EQ(fields["depth"], "");
    EXPECT_EQ(fields["is_cut"], "true");
    EXPECT_EQ(fields["n_turns"], "2");
    EXPECT_EQ(std::stod(fields["decode_ms"]), 105);
    EXPECT_EQ(std::stod(fields["plain_ms"]), 155);
    EXPECT_EQ(std::stod(fields["verify_ms"]), 62);
    EXPECT_EQ(std::stod(fields["speedup"]), 1.477);
    EXPECT_EQ(std::stod(fields["request_speedup"]), 1.423);
    EXPECT_EQ(std::stod(fields["request_speedup_low"]), 1.1);
    EXPECT_EQ(std::stod(fields["request_speedup_high"]), 1.7);
    EXPECT_EQ(fields["acceptance_by_position"], "0.75 0.25");
    EXPECT_EQ(fields["peak_memory_bytes"], "123456789");
    EXPECT_EQ(fields["first_difference"], "27");
    EXPECT_EQ(fields["model"], "m.gguf");
    EXPECT_EQ(fields["threads"], "2");
    EXPECT_EQ(fields["exact"], "true");
    EXPECT_EQ(fields["fresh_strategies"], "false");
    EXPECT_EQ(fields["knap"], "0.1.0");
    EXPECT_EQ(fields["parallel"], "1");
    EXPECT_EQ(fields["throughput"], "");
    EXPECT_EQ(fields["gap_max_ms"], "");
}

TEST(BenchCsv, RowsHaveTheLoadOfTheirStrategy) {
    BenchReport report = test::example_report();
    report.settings.parallel = 4;
    report.loads = {test::example_load("autoregressive"), test::example_load()};
    report.loads[0].throughput = {.mean = 1};
    const auto records = parse_csv(to_csv(report));
    auto plain = by_name(records[0], records[1]);
    EXPECT_EQ(plain["strategy"], "autoregressive");
    EXPECT_EQ(plain["throughput"], "1");
    EXPECT_EQ(plain["throughput_low"], "");
    auto lookup = by_name(records[0], records[2]);
    EXPECT_EQ(lookup["parallel"], "4");
    EXPECT_EQ(lookup["throughput"], "1.25");
    EXPECT_EQ(lookup["throughput_low"], "1.1");
    EXPECT_EQ(lookup["all_tokens_per_second"], "175") << "the median over the turns";
    EXPECT_EQ(lookup["first_median_ms"], "22");
    EXPECT_EQ(lookup["first_p95_ms"], "32");
    EXPECT_EQ(lookup["gap_median_ms"], "3");
    EXPECT_EQ(lookup["gap_p95_ms"], "5");
    EXPECT_EQ(lookup["gap_max_ms"], "9") << "the largest of all turns";
}

TEST(BenchCsv, HasHeadingsWithoutRows) {
    BenchReport report = test::example_report();
    report.rows.clear();
    EXPECT_EQ(parse_csv(to_csv(report)).size(), 1u);
}

}  // namespace
}  // namespace knap::bench_csv_test
