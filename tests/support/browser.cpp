#include "support/browser.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "base/text.h"
#include "support/process.h"
#include "support/tiny_model.h"

namespace knap {
namespace {

namespace fs = std::filesystem;

fs::path find_browser() {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
            if (fs::exists(fs::path(folder) / name)) {
                return fs::path(folder) / name;
            }
        }
    }
    throw std::runtime_error("expected chromium on the PATH: deps/setup packages chromium");
}

// A folder for the browser's files, deleted afterwards.
class BrowserFolder {
  public:
    BrowserFolder() : path_(temporary_folder() / "browser") { fs::create_directories(path_); }
    ~BrowserFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

// The pages are our own, so we can do without the browser's sandbox, which root and containers
// cannot use.
std::string run_browser(const BrowserFolder& folder,
                        const fs::path& page,
                        const std::vector<std::string>& flags) {
    ProcessRequest request;
    request.arguments = {"--headless",
                         "--no-sandbox",
                         "--disable-gpu",
                         "--disable-dev-shm-usage",
                         "--no-first-run",
                         "--hide-scrollbars",
                         "--allow-file-access-from-files",
                         "--virtual-time-budget=10000",
                         concat("--user-data-dir=", folder.path().string())};
    request.arguments.insert(request.arguments.end(), flags.begin(), flags.end());
    request.arguments.push_back(concat("file://", fs::absolute(page).string()));
    request.timeout_s = 240;
    const ProcessResult result = run_process(find_browser(), request);
    if (result.exit_code != 0) {
        throw std::runtime_error(concat("the browser failed: ", result.error));
    }
    return result.output;
}

// Chromium's windows are at least 500 pixels wide. A frame inside one can be as narrow as a phone.
constexpr const char* kFrame = R"html(<!DOCTYPE html><meta charset="utf-8">
<style>body { margin: 0; } iframe { border: 0; width: WIDTHpx; height: HEIGHTpx; }</style>
<iframe src="PAGE"></iframe>
<pre id="measured"></pre>
<script>
const frame = document.querySelector("iframe");
function measure(page) {
  const figures = [...page.querySelectorAll("figure")].map(figure => ({
    title: figure.querySelector("h3").textContent,
    drew: figure.querySelectorAll("svg use, svg path[d], svg polygon, svg rect").length,
    width: figure.getBoundingClientRect().width }));
  const points = [...page.querySelectorAll("svg [onmousemove]")];
  for (const point of points) {
    point.dispatchEvent(new frame.contentWindow.MouseEvent("mousemove", {clientX: 9, clientY: 9}));
  }
  const tip = page.getElementById("tip");
  const last = tip && !tip.hidden ? tip.textContent : "";
  for (const point of points) {
    point.dispatchEvent(new frame.contentWindow.MouseEvent("mouseout"));
  }
  const sizes = [...page.querySelectorAll("figure svg")].map(svg => 14 * svg.getScreenCTM().a);
  return { errors: frame.contentWindow.thrown, width: frame.contentWindow.innerWidth,
    scroll_width: page.documentElement.scrollWidth, figures, font_px: Math.min(...sizes),
    tips: { count: points.length, last, goes_away: tip !== null && tip.hidden } };
}
frame.addEventListener("load", () => {
  document.getElementById("measured").textContent =
    "BEGIN" + encodeURIComponent(JSON.stringify(measure(frame.contentDocument))) + "END";
});
</script>
)html";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    if (at == std::string::npos) {
        throw std::runtime_error(concat("expected ", from, " in a page, found none"));
    }
    return text.replace(at, from.size(), to);
}

std::string read_all(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Puts a copy of the page, which records script errors, into a frame of that size.
fs::path write_frame(const BrowserFolder& folder, const fs::path& page, int width, int height) {
    const fs::path copy = folder.path() / "page.html";
    std::ofstream(copy) << replaced(
        read_all(page), "<head>",
        "<head><script>window.thrown = []; addEventListener('error', "
        "event => thrown.push(String(event.message || event.target)), true);</script>");
    std::string frame = replaced(kFrame, "WIDTH", concat(width));
    frame = replaced(frame, "HEIGHT", concat(height));
    frame = replaced(frame, "PAGE", copy.filename().string());
    const fs::path path = folder.path() / "frame.html";
    std::ofstream(path) << frame;
    return path;
}

// Decodes URL escapes such as "%7B".
std::string decoded(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
            i += 2;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

}  // namespace

nlohmann::json measure_page(const fs::path& page, int width) {
    const BrowserFolder folder;
    const std::string dump =
        run_browser(folder, write_frame(folder, page, width, 800), {"--dump-dom"});
    const auto begin = dump.rfind(">BEGIN");
    const auto end = dump.rfind("END<");
    if (begin == std::string::npos || end == std::string::npos) {
        throw std::runtime_error("expected the measurements of a page, found: " +
                                 dump.substr(0, 400));
    }
    return nlohmann::json::parse(decoded(dump.substr(begin + 6, end - begin - 6)));
}

void keep_screenshot(const fs::path& page, int width, int height, const fs::path& picture) {
    const BrowserFolder folder;
    run_browser(
        folder, write_frame(folder, page, width, height),
        {concat("--window-size=", width, ",", height), concat("--screenshot=", picture.string())});
}

}  // namespace knap
