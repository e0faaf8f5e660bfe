#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include <unistd.h>

#include "base/text.h"

namespace knap {
namespace {

constexpr int kCells = 32;
constexpr std::chrono::milliseconds kInterval{50};

}  // namespace

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), is_terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::update(double fraction, std::string_view note) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || (is_drawn_ && now - last_draw_ < kInterval)) {
        return;
    }
    is_drawn_ = true;
    last_draw_ = now;
    const double part = std::clamp(fraction, 0.0, 1.0);
    std::string cells(kCells, ' ');
    std::fill_n(cells.begin(), static_cast<int>(part * kCells), '=');
    std::cerr << concat('\r', label_, " [", cells, "] ", static_cast<int>(part * 100), "%",
                        note.empty() ? "" : "  ", note, "\033[K")
              << std::flush;
}

void ProgressBar::finish() {
    if (is_drawn_) {
        std::cerr << "\r\033[K" << std::flush;
        is_drawn_ = false;
    }
}

std::string time_left(double seconds) {
    const auto whole = static_cast<long>(std::ceil(seconds));
    std::ostringstream out;
    out << std::setfill('0');
    if (whole >= 3600) {
        out << whole / 3600 << ':' << std::setw(2);
    }
    out << whole / 60 % 60 << ':' << std::setw(2) << whole % 60 << " left";
    return out.str();
}

}  // namespace knap
