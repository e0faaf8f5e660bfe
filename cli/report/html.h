// Pieces of an HTML page. Text from outside must go through html_text(); everything else is taken
// as markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

// Escapes `text` for use between tags and in quoted attributes.
std::string html_text(std::string_view text);

struct HtmlColumn {
    std::string title;
    bool is_number = false;  // right-aligned
};

// A table that scrolls horizontally on a narrow page. Cells are markup.
std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace knap
