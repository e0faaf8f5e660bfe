// A figure as HTML: title, legend, picture, caption.
#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/page_parts.h"

namespace knap {
namespace {

constexpr int kWidth = 440;  // makes letters about as large as those of the page

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

// gnuplot uses the same ids in every picture, but ids on one page must be unique.
std::string with_own_names(std::string svg, std::size_t index) {
    const std::string prefix = concat("f", index, "-");
    for (const char* before : {"id='", "id=\"", "xlink:href='#"}) {
        replace_all(svg, before, concat(before, prefix));
    }
    return svg;
}

std::string picture(const Figure& figure, std::size_t index) {
    std::string svg = draw_svg_element(figure.script, {.width = kWidth, .height = figure.height});
    svg.insert(std::string_view("<svg").size(),
               concat(" role=\"img\" aria-label=\"", html_text(figure.title), "\""));
    return with_own_names(std::move(svg), index);
}

std::string legend(const std::vector<LegendEntry>& entries) {
    std::string list;
    for (const LegendEntry& entry : entries) {
        list += concat("<li><span class=\"mark\" style=\"color:", entry.color, "\">", entry.glyph,
                       "</span>", html_text(entry.text), "</li>");
    }
    return list.empty() ? "" : concat("<ul class=\"legend\">", list, "</ul>\n");
}

}  // namespace

std::string figure_part(const Figure& figure, std::size_t index) {
    return concat("<figure>\n<h3>", html_text(figure.title),
                  figure.has_projection ? " <span class=\"badge\">includes projections</span>" : "",
                  "</h3>\n", legend(figure.legend),
                  figure.script.empty() ? "" : picture(figure, index), "\n<figcaption>",
                  html_text(figure.caption), "</figcaption>\n</figure>\n");
}

}  // namespace knap
