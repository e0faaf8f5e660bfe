// The page of `knap report` in a real browser.
#include <algorithm>
#include <string>

#include "cli/command.h"
#include "support/bench_fixture.h"
#include "support/browser.h"

namespace knap::report_page_test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kPhone = 390;
constexpr int kDesktop = 1280;

// Kept in the build folder for inspection. Named after the first test that uses it, because tests
// may run in parallel as separate processes.
const fs::path& folder() {
    static const fs::path path = [] {
        std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
        std::ranges::replace(name, '/', '-');
        fs::create_directories(fs::path("report") / name);
        return fs::absolute(fs::path("report") / name);
    }();
    return path;
}

// Two files, one of them interrupted and with projections, as one page. Written once.
const fs::path& page() {
    static const fs::path path = [] {
        std::ofstream(folder() / "small.json") << bench_fixture();
        std::ofstream(folder() / "large.json") << bench_fixture({.model_name = "a larger model",
                                                                 .n_layers = 16,
                                                                 .n_embd = 2048,
                                                                 .has_projections = true,
                                                                 .is_complete = false});
        const fs::path output = folder() / "report.html";
        const auto result = run_knap({"report", (folder() / "small.json").string(),
                                      (folder() / "large.json").string(), "-o", output.string()});
        EXPECT_EQ(result.exit_code, 0) << result.error;
        return output;
    }();
    return path;
}

class ReportPage : public ::testing::TestWithParam<int> {};

TEST_P(ReportPage, IsDrawnWithoutErrorsAndFitsTheWindow) {
    const json found = measure_page(page(), GetParam());
    EXPECT_EQ(found["errors"], json::array());
    EXPECT_EQ(found["width"], GetParam());
    EXPECT_LE(found["scroll_width"], GetParam()) << "nothing to scroll sideways";
    EXPECT_GE(found["figures"].size(), 12u);
    for (const json& figure : found["figures"]) {
        EXPECT_GT(figure["drew"], 20) << figure["title"];
        EXPECT_GT(figure["width"], 300) << figure["title"];
    }
    EXPECT_GE(found["font_px"], 9.5);
    EXPECT_GT(found["tips"]["count"], 50);
    EXPECT_THAT(found["tips"]["last"].get<std::string>(), testing::HasSubstr(" ms"));
    EXPECT_TRUE(found["tips"]["goes_away"]);
}
INSTANTIATE_TEST_SUITE_P(Windows, ReportPage, ::testing::Values(kPhone, kDesktop));

TEST(ReportInBrowser, ScreenshotsAreKept) {
    keep_screenshot(page(), kDesktop, 5200, folder() / "report.png");
    keep_screenshot(page(), kPhone, 9000, folder() / "report-phone.png");
    for (const char* name : {"report.png", "report-phone.png"}) {
        EXPECT_GT(fs::file_size(folder() / name), 50000u) << name << " shows something";
    }
}

// measure_page() itself detects faults.
TEST(ReportInBrowser, BrokenPagesAreDetected) {
    const fs::path broken = folder() / "broken.html";
    std::ofstream(broken) << "<!DOCTYPE html><html><head></head><body><div id=\"tip\"></div>"
                             "<figure style=\"width: 900px\"><h3>empty</h3></figure>"
                             "<script>throw new Error('oh no')</script></body></html>";
    const json found = measure_page(broken, kPhone);
    EXPECT_THAT(found["errors"].dump(), testing::HasSubstr("oh no"));
    EXPECT_GE(found["scroll_width"], 900);
    EXPECT_EQ(found["figures"][0]["drew"], 0);
}

}  // namespace
}  // namespace knap::report_page_test
