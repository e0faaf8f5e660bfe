#include "cli/report/html.h"

#include "base/text.h"

namespace knap {
namespace {

std::string cell(std::string_view tag, const HtmlColumn& column, std::string_view content) {
    return concat("<", tag, column.is_number ? " class=\"number\">" : ">", content, "</", tag, ">");
}

}  // namespace

std::string html_text(std::string_view text) {
    std::string escaped;
    escaped.reserve(text.size());
    for (const char letter : text) {
        switch (letter) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            case '\'':
                escaped += "&#39;";
                break;
            default:
                escaped += letter;
        }
    }
    return escaped;
}

std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
    std::string table = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
    for (const HtmlColumn& column : columns) {
        table += cell("th", column, column.title);
    }
    table += "</tr></thead>\n<tbody>\n";
    for (const auto& row : rows) {
        table += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) {
            table += cell("td", columns[i], row[i]);
        }
        table += "</tr>\n";
    }
    return table + "</tbody></table></div>\n";
}

}  // namespace knap
