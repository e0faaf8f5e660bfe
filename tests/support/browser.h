// Opens a page in a real browser, headless Chromium.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace knap {

// Measures a page in a browser window `width` pixels wide:
//   errors         messages of all errors that scripts threw
//   width          of the window
//   scroll_width   of the page; more than `width`: it overflows
//   figures        for each, its `title`, how many shapes it `drew`, and its width
//   font_px        the smallest font size in figures, as displayed
//   tips           how many points have tooltips, the text of the last, and whether it disappears
// Throws std::runtime_error when there is no browser or the page does not load.
nlohmann::json measure_page(const std::filesystem::path& page, int width);

// Saves a screenshot of the page of that size as `picture` (.png).
void keep_screenshot(const std::filesystem::path& page,
                     int width,
                     int height,
                     const std::filesystem::path& picture);

}  // namespace knap
