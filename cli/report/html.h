// Pieces of an HTML page. What comes from outside goes through html_text(); everything else is
// taken as markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

// `text` for between tags and inside quoted attributes.
std::string html_text(std::string_view text);

struct HtmlColumn {
    std::string title;
    bool is_number = false;  // set flush right
};

// A table that scrolls inside its place where the page is narrow. Cells are markup.
std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace knap
