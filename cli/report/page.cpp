#include "cli/report/page.h"

#include <algorithm>

#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/page_parts.h"
#include "tools/measure/report/bench_title.h"

namespace knap {
namespace {

struct Section {
    const char* id;
    const char* title;
    std::string content;
};

// Draws figures side by side and numbers them across the page.
class FigureGrid {
  public:
    std::string draw(const std::vector<Figure>& figures) {
        std::string grid = "<div class=\"figures\">\n";
        for (const Figure& figure : figures) {
            grid += figure_part(figure, n_drawn_++);
        }
        return grid + "</div>\n";
    }

  private:
    std::size_t n_drawn_ = 0;
};

std::vector<Figure> speed_figures(const ReportSet& set) {
    std::vector<Figure> figures{task_figure(set)};
    for (Figure& figure : context_figures(set)) {
        figures.push_back(std::move(figure));
    }
    return figures;
}

std::vector<Section> sections_of(const ReportSet& set) {
    FigureGrid grid;
    std::vector<Section> sections{
        {"speed", "Speed", grid.draw(speed_figures(set))},
        {"rounds", "Rounds",
         grid.draw({acceptance_figure(set), time_figure(set), prediction_figure(set)})},
        {"levels", "Draft plans", grid.draw(level_figures(set))},
        {"costs", "Costs of passes", grid.draw(cost_figures(set))},
        {"summary", "Summary", summary_part(set)},
        {"paper", "Comparison with the paper", paper_part(set)},
        {"rows", "All rows", rows_part(set)},
        {"run", "Model, host and settings", provenance_part(set)},
    };
    if (std::string loads = loads_part(set); !loads.empty()) {
        sections.insert(sections.begin(), {"loads", "Several sessions at once", std::move(loads)});
    }
    if (std::string texts = peer_texts_part(set); !texts.empty()) {
        const auto rows = std::ranges::find(sections, std::string_view("rows"), &Section::id);
        sections.insert(rows, {"peers", "Texts of peers", std::move(texts)});
    }
    return sections;
}

std::string navigation(const std::vector<Section>& sections) {
    std::string links = "<nav>";
    for (const Section& section : sections) {
        links += concat("<a href=\"#", section.id, "\">", section.title, "</a>");
    }
    return links + "</nav>\n";
}

}  // namespace

std::string report_page(std::span<const ReportFile> files) {
    const ReportSet set(files);
    const std::vector<Section> sections = sections_of(set);
    std::string page = concat(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>knap: ",
        html_text(model_title(files.front().bench.model)), "</title>\n<style>\n", page_style(),
        "</style>\n</head>\n<body>\n", header_part(set), navigation(sections), "<main>\n",
        highlights_part(set));
    for (const Section& section : sections) {
        page += concat("<section id=\"", section.id, "\">\n<h2>", section.title, "</h2>\n",
                       section.content, "</section>\n");
    }
    return concat(page, "</main>\n<div id=\"tip\" hidden></div>\n<script>\n", page_script(),
                  "</script>\n</body>\n</html>\n");
}

}  // namespace knap
