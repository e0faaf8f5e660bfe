// Draws pictures with gnuplot, which runs as a child process.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace knap {

// True for a path that ends in .svg or .png, the formats that can be drawn.
bool is_picture(const std::filesystem::path& path);

// Throws when gnuplot cannot be run; the message tells how to get it. For commands that take a long
// time before they draw.
void require_gnuplot();

struct PictureSize {
    int width = 1200;  // in pixels
    int height = 900;
};

// Draws a gnuplot script to a file. The script leaves out `set terminal` and `set output`, which
// follow from the path (is_picture). Throws when gnuplot cannot be run or rejects the script; an
// existing file then stays as it was.
void draw_picture(const std::filesystem::path& path,
                  std::string_view script,
                  PictureSize size = {});

// Draws a script as an svg element to embed in a page. It has no background and scales to any
// width: `size` only gives the proportions and the relative size of the letters.
std::string draw_svg_element(std::string_view script, PictureSize size);

}  // namespace knap
