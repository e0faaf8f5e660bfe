#include "tools/measure/report/bench_markdown.h"

#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bench_example.h"
#include "tools/measure/report/bench_table.h"
#include "tools/peer/peer_names.h"

namespace knap::bench_markdown_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Line = std::vector<std::string>;

// The cells of every table line, in order; bars inside a cell are escaped.
std::vector<Line> parse_tables(const std::string& text) {
    std::vector<Line> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("| ")) {
            continue;
        }
        lines.emplace_back();
        const std::regex cell("\\| ((?:[^|\\\\]|\\\\.)*) (?=\\|)");
        for (std::sregex_iterator found(line.begin(), line.end(), cell), end; found != end;
             ++found) {
            lines.back().push_back(
                std::regex_replace((*found)[1].str(), std::regex("\\\\\\|"), "|"));
        }
    }
    return lines;
}

TEST(BenchMarkdown, ParsesBack) {
    BenchReport report = test::example_report();
    report.rows[3].id = "a | b";
    report.skipped = {{"data.jsonl:7", "no JSON"}};
    const std::string text = to_markdown(report);
    const auto lines = parse_tables(text);
    const BenchTable means = summary_table(summarise(report.rows));
    const BenchTable rows = row_table(report.rows);
    std::vector<Line> expected{means.headings};
    expected.insert(expected.end(), means.lines.begin(), means.lines.end());
    expected.push_back(rows.headings);
    expected.insert(expected.end(), rows.lines.begin(), rows.lines.end());
    EXPECT_EQ(lines, expected);
    EXPECT_THAT(text, HasSubstr("- data.jsonl:7: no JSON\n"));
    EXPECT_THAT(text, HasSubstr("request: the whole request"));
    for (const char* part : {"m.gguf", "A CPU, 2 cores, avx512", "30.5 GB/s", "- threads: 2",
                             "- seed: 0", "knap 0.1.0"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_THAT(text, Not(HasSubstr("interrupted")));
    EXPECT_THAT(text, Not(HasSubstr("projection")));
}

TEST(BenchMarkdown, ShowsSeveralSessionsAtOnce) {
    BenchReport report = test::example_report();
    EXPECT_THAT(to_markdown(report), Not(HasSubstr("sessions at once")));
    report.settings.parallel = 4;
    report.loads = {test::example_load(), test::example_load(kPlainPeer)};
    report.loads[1].n_identical = std::nullopt;
    const std::string text = to_markdown(report);
    EXPECT_THAT(text, HasSubstr("## 4 sessions at once"));
    const auto lines = parse_tables(text);
    EXPECT_EQ(lines.at(0), load_table(report.loads).headings);
    EXPECT_EQ(lines.at(1), (Line{"lookup", "greedy", "1.25x", "1.10-1.40", "175.0", "22 ms",
                                 "32 ms", "3.0 ms", "5.0 ms", "9.0 ms", "1 of 2"}));
    EXPECT_EQ(lines.at(2).front(), "llama (draft_max=4)");
    EXPECT_EQ(lines.at(2).back(), "");
}

TEST(BenchMarkdown, CountsTheTextsOfPeers) {
    BenchReport report = test::example_report();
    EXPECT_THAT(to_markdown(report), Not(HasSubstr("Texts of peers")));
    for (const char* id : {"p1", "p2", "p3"}) {
        for (const char* peer : {"llama", "ngram-mod"}) {
            BenchRow row = test::example_row(peer);
            row.id = id;
            row.identical_to_knap = id != std::string("p1");
            if (peer != std::string("llama")) {
                row.identical_to_libllama = id == std::string("p3");
            }
            report.rows.push_back(row);
        }
    }
    const std::string text = to_markdown(report);
    EXPECT_THAT(text, HasSubstr("## Texts of peers"));
    EXPECT_THAT(
        parse_tables(text),
        testing::IsSupersetOf({Line{"peer", "prompts", "libllama's plain text", "knap's text"},
                               Line{"llama", "3", "", "2"}, Line{"ngram-mod", "3", "1", "2"}}));
    EXPECT_THAT(text, HasSubstr("| ngram-mod (draft_max=4) |"));
}

TEST(BenchMarkdown, MarksProjectionsAndInterruptedRuns) {
    BenchReport report = test::example_report();
    report.is_complete = false;
    report.settings.assume_acceptance = 0.8;
    report.rows[1].is_projection = true;
    const std::string text = to_markdown(report);
    EXPECT_THAT(text, HasSubstr("was interrupted"));
    EXPECT_THAT(text, HasSubstr("Projection: "));
    EXPECT_THAT(text, HasSubstr("1.48x projected"));
}

TEST(BenchTable, OneTurnAndOnePromptHaveNoInterval) {
    BenchRow row = test::example_row();
    row.request_speedup = {.mean = 1.5};
    EXPECT_EQ(row_table(std::span(&row, 1)).lines[0][7], "1.50x");
    const auto means = summarise({row});
    EXPECT_EQ(summary_table(means).lines[0][7], "1.50x");
}

TEST(BenchTable, CellsDescribeTheRow) {
    BenchRow row = test::example_row("llama");
    row.options = "flash=off";
    const BenchTable table = row_table(std::span(&row, 1));
    ASSERT_EQ(table.lines[0].size(), table.headings.size());
    EXPECT_EQ(table.lines[0], (Line{"data.jsonl", "p1", "20 cut", "llama (flash=off)", "greedy",
                                    "1.48x", "1.20-1.80", "1.42x 1.10-1.70", "76.2", "50 %", "1.60",
                                    "10/59/20/10 %", "12", "0.88"}));
}

}  // namespace
}  // namespace knap::bench_markdown_test
