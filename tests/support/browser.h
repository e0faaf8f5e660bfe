// A page opened in a real browser, without a window: Chromium.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace knap {

// What a browser of a window `width` pixels wide makes of a page:
//   errors         texts of everything that scripts threw
//   width          of the window
//   scroll_width   of the page; more than `width`: it overflows
//   figures        for each, its `title`, how many shapes it `drew`, and how wide it is
//   font_px        the smallest size of letters in figures, as shown
//   tips           how many points have words, what the last of them said, and whether it went away
// Throws std::runtime_error when there is no browser, or the page does not load.
nlohmann::json measure_page(const std::filesystem::path& page, int width);

// Keeps a picture of the page, so wide and high, as `picture` (.png).
void keep_screenshot(const std::filesystem::path& page,
                     int width,
                     int height,
                     const std::filesystem::path& picture);

}  // namespace knap
