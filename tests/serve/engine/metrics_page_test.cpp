#include "serve/engine/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::test::metrics_page_test {
namespace {

using ::testing::HasSubstr;

TEST(MetricsPage, SaysWhatASampleIs) {
    MetricsPage page;
    page.counter("a_total", "Some things.", 3, metric_label("code", "429"));
    EXPECT_EQ(page.text(),
              "# HELP a_total Some things.\n# TYPE a_total counter\na_total{code=\"429\"} 3\n");
}

TEST(MetricsPage, LargeCountersKeepTheirSmallDifferences) {
    MetricsPage page;
    page.counter("seconds_total", "Time.", 12345678.0625);
    page.counter("tokens_total", "Tokens.", std::int64_t{123'456'789'012});
    page.gauge("share", "A share.", 0.1);
    EXPECT_THAT(page.text(), HasSubstr("\nseconds_total 12345678.0625\n"));
    EXPECT_THAT(page.text(), HasSubstr("\ntokens_total 123456789012\n"));
    EXPECT_THAT(page.text(), HasSubstr("\nshare 0.1\n"));
}

TEST(MetricsPage, LabelsStayInTheirQuotes) {
    EXPECT_EQ(metric_label("name", "a\"b\\c\nd"), R"(name="a\"b\\c d")");
}

TEST(MetricsPage, HistogramsCountUpToEachBound) {
    Histogram times({0.5, 2});
    for (const double time : {0.1, 0.5, 1.0, 3.0}) {
        times.add(time);
    }
    MetricsPage page;
    page.histogram("time", "Times.", times, metric_label("engine", "0"));
    EXPECT_THAT(page.text(), HasSubstr("# TYPE time histogram\n"
                                       "time_bucket{engine=\"0\",le=\"0.5\"} 2\n"
                                       "time_bucket{engine=\"0\",le=\"2\"} 3\n"
                                       "time_bucket{engine=\"0\",le=\"+Inf\"} 4\n"
                                       "time_sum{engine=\"0\"} 4.6\n"
                                       "time_count{engine=\"0\"} 4\n"));
}

}  // namespace
}  // namespace knap::test::metrics_page_test
