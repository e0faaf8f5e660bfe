#include "cli/explain/plan_picture.h"

#include <array>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "cli/profile/axes.h"

namespace knap {
namespace {

struct Look {
    char letter;
    std::string_view escape;  // terminal colour
    std::string_view rgb;     // plot colour
};
constexpr Look kFull{'#', "\033[34m", "#1f5fa8"};
constexpr Look kSkip{'.', "\033[90m", "#d9d9d9"};
// In ascending order of window size.
constexpr std::array<Look, kMaxWindows> kWindows{{{'a', "\033[33m", "#f2b134"},
                                                  {'b', "\033[32m", "#8fbc5a"},
                                                  {'c', "\033[36m", "#4aa3a2"},
                                                  {'d', "\033[35m", "#9a6fb0"}}};
constexpr std::string_view kUsual = "\033[0m";

constexpr std::string_view kIndent = "  ";
constexpr int kLabelWidth = 11;

struct DrawnLevel {
    Level level;
    Look look;
};

// The levels to draw: full, the plan's windows, and skip.
std::vector<DrawnLevel> drawn_levels(const ModulePlan& plan) {
    std::vector<DrawnLevel> levels{{Level::full, kFull}};
    for (const Window& window : distinct_windows(plan)) {
        const Look& look = kWindows[(levels.size() - 1) % kWindows.size()];
        levels.push_back({Level::windowed(window.sinks, window.recent), look});
    }
    levels.push_back({Level::skip, kSkip});
    return levels;
}

const Look& look_of(const std::vector<DrawnLevel>& levels, const Level& level) {
    std::size_t i = 0;
    while (levels[i].level != level) {
        ++i;
    }
    return levels[i].look;
}

std::string letter(const Look& look, bool has_colors) {
    return has_colors ? concat(look.escape, look.letter, kUsual) : std::string(1, look.letter);
}

std::string label(std::string_view text) {
    return concat(kIndent, text,
                  std::string(static_cast<std::size_t>(kLabelWidth) - text.size(), ' '));
}

// "0         10        20": the number of every tenth layer above its column.
std::string layer_scale(int n_layers) {
    std::string scale;
    for (int layer = 0; layer < n_layers; layer += 10) {
        scale.resize(static_cast<std::size_t>(layer), ' ');
        scale += concat(layer);
    }
    return scale;
}

std::string module_row(const ModulePlan& plan,
                       const std::vector<DrawnLevel>& levels,
                       Module module,
                       bool has_colors) {
    std::string row;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        row += letter(look_of(levels, plan.level(layer, module)), has_colors);
    }
    return row;
}

std::string head_name(const ModulePlan& plan) {
    return plan.head() == HeadLevel::full ? "full" : "reduced";
}

// A line per module at `level`: its layer, then 1 for attention or 0 for MLP.
std::string boxes_at(const ModulePlan& plan, const Level& level) {
    std::ostringstream rows;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        for (const Module module : {Module::attention, Module::mlp}) {
            if (plan.level(layer, module) == level) {
                rows << layer << ' ' << (module == Module::attention ? 1 : 0) << '\n';
            }
        }
    }
    return rows.str();
}

}  // namespace

std::string plan_picture(const ModulePlan& plan, bool has_colors) {
    const auto levels = drawn_levels(plan);
    std::string legend;
    for (const DrawnLevel& drawn : levels) {
        legend += concat(letter(drawn.look, has_colors), " ", level_name(drawn.level), "   ");
    }
    return concat(label("layer"), layer_scale(plan.n_layers()), "\n", label("attention"),
                  module_row(plan, levels, Module::attention, has_colors), "\n", label("MLP"),
                  module_row(plan, levels, Module::mlp, has_colors), "\n", label(""), legend,
                  "head ", head_name(plan), "\n");
}

std::string plan_plot_script(const ModulePlan& plan, std::string_view title) {
    std::ostringstream data;
    std::ostringstream plot;
    int n_blocks = 0;
    for (const DrawnLevel& drawn : drawn_levels(plan)) {
        const std::string boxes = boxes_at(plan, drawn.level);
        if (boxes.empty()) {
            continue;
        }
        const std::string block = concat("$level_", n_blocks++);
        data << block << " << END\n" << boxes << "END\n";
        plot << (n_blocks == 1 ? "plot " : ", \\\n    ") << block
             << " using 1:2:(0.45):(0.42) with boxxyerror fillcolor rgb '" << drawn.look.rgb
             << "' title '" << level_name(drawn.level) << "'";
    }
    return concat(data.str(), "set title '", title, "'\nset xlabel 'layer (head: ", head_name(plan),
                  ")'\nset xrange [-0.7:", plan.n_layers(),
                  "]\nset yrange [-0.6:1.6]\nset ytics ('attention' 1, 'MLP' 0)\nset key outside "
                  "right\nset style fill solid 1 noborder\nunset grid\n",
                  plot.str(), "\n");
}

}  // namespace knap
