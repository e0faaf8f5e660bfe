// Pictures, drawn by gnuplot: a program of its own, which is run as a child.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace knap {

// Whether a path ends as a picture that we can draw does: .svg or .png.
bool is_picture(const std::filesystem::path& path);

// Throws, saying how to get it, when gnuplot cannot be run. For commands that take long before
// they have something to draw.
void require_gnuplot();

struct PictureSize {
    int width = 1200;  // in pixels
    int height = 900;
};

// Draws what a script of gnuplot says, without its `set terminal` and `set output`, which follow
// from the path (is_picture). Throws, and leaves a file of that name as it was, when gnuplot cannot
// be run or refuses the script.
void draw_picture(const std::filesystem::path& path,
                  std::string_view script,
                  PictureSize size = {});

// The same as the text of an svg element that fits any width, on a ground of its page's: for a page
// to hold. Without a size in pixels, `size` gives the proportions, and how large its letters are.
std::string draw_svg_element(std::string_view script, PictureSize size);

}  // namespace knap
