#include "forward/plan_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {
namespace {

// --- writing ---

std::string level_text(const Level& level) {
    switch (level.kind) {
        case Level::Kind::full:
            return "full";
        case Level::Kind::skip:
            return "skip";
        case Level::Kind::window:
            return concat('w', level.window.sinks, '+', level.window.recent);
        case Level::Kind::experts:
            return concat('e', level.n_experts);
    }
    return {};
}

std::string join(const std::vector<std::string>& parts, char separator) {
    std::string text;
    for (const std::string& part : parts) {
        if (!part.empty()) {
            text += (text.empty() ? std::string() : std::string(1, separator)) + part;
        }
    }
    return text;
}

// The layers below `end`, which is where the plan exits, that are to have one level.
template <typename Predicate>
std::vector<int> layers_where(int end, Predicate is_one) {
    std::vector<int> layers;
    for (int layer = 0; layer < end; ++layer) {
        if (is_one(layer)) {
            layers.push_back(layer);
        }
    }
    return layers;
}

// Ascending layers as "3-7+9".
std::string ranges_text(const std::vector<int>& layers) {
    std::vector<std::string> ranges;
    for (std::size_t first = 0; first < layers.size();) {
        std::size_t last = first;
        while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) {
            ++last;
        }
        ranges.push_back(first == last ? std::to_string(layers[first])
                                       : concat(layers[first], '-', layers[last]));
        first = last + 1;
    }
    return join(ranges, '+');
}

// An item that also names layers at or above `end` does no harm: `exit` comes after it and wins.
std::string item_text(char modules, const std::vector<int>& layers, int end, const Level& level) {
    if (layers.empty()) {
        return {};
    }
    const bool is_every_layer = layers.size() == static_cast<std::size_t>(end);
    return concat(modules, is_every_layer ? "" : ranges_text(layers), '=', level_text(level));
}

std::string skips_text(const ModulePlan& plan, int end) {
    const auto skips_attention = [&](int layer) { return !plan.runs(layer, Module::attention); };
    const auto skips_mlp = [&](int layer) { return !plan.runs(layer, Module::mlp); };
    const auto item = [&](char modules, auto is_one) {
        return item_text(modules, layers_where(end, is_one), end, Level::skip);
    };
    const std::string by_layer =
        join({item('l', [&](int i) { return skips_attention(i) && skips_mlp(i); }),
              item('a', [&](int i) { return skips_attention(i) && !skips_mlp(i); }),
              item('m', [&](int i) { return !skips_attention(i) && skips_mlp(i); })},
             ',');
    const std::string by_module = join({item('a', skips_attention), item('m', skips_mlp)}, ',');
    return by_module.size() < by_layer.size() ? by_module : by_layer;
}

std::string window_text(const ModulePlan& plan, int end, const Window& window) {
    const Level level = Level::windowed(window.sinks, window.recent);
    const auto has_level = [&](int i) { return plan.level(i, Module::attention) == level; };
    return item_text('a', layers_where(end, has_level), end, level);
}

// The numbers of experts that levels below `end` have, ascending.
std::set<int> expert_counts(const ModulePlan& plan, int end) {
    std::set<int> counts;
    for (int layer = 0; layer < end; ++layer) {
        const Level& level = plan.level(layer, Module::mlp);
        if (level.kind == Level::Kind::experts) {
            counts.insert(level.n_experts);
        }
    }
    return counts;
}

std::string experts_text(const ModulePlan& plan, int end, int n_experts) {
    const Level level = Level::with_experts(n_experts);
    const auto has_level = [&](int i) { return plan.level(i, Module::mlp) == level; };
    return item_text('m', layers_where(end, has_level), end, level);
}

// --- reading ---

// Digits and nothing else; none when they are too many for an int.
std::optional<int> parse_number(std::string_view text) {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    const bool is_number = error == std::errc() && parsed == end && text.front() != '-';
    return is_number ? std::optional(value) : std::nullopt;
}

class PlanParser {
  public:
    PlanParser(int n_layers, std::string_view where) : plan_(n_layers), where_(where) {}

    void apply(std::string_view item);
    const ModulePlan& plan() const { return plan_; }

  private:
    struct Range {
        int first;
        int last;
    };

    void apply_levels(std::string_view modules, std::string_view level);
    void apply_exit(std::string_view layer);
    void apply_head(std::string_view level);
    Range parse_range(std::string_view text) const;
    int parse_layer(std::string_view text) const;
    Level parse_level(std::string_view text) const;
    Level parse_window(std::string_view text) const;
    Level parse_experts(std::string_view text) const;

    template <typename Expected>
    [[noreturn]] void fail_at(const Expected& expected, std::string_view found) const {
        fail(where_, ": expected ", expected, ", found ",
             found.empty() ? "nothing" : printable(found, 64), " in ", in_quotes(item_));
    }

    ModulePlan plan_;
    std::string_view where_;
    std::string_view item_;  // the one at hand
};

void PlanParser::apply(std::string_view item) {
    item_ = item;
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
        fail(where_, ": expected \"full\" or items such as a3-7=skip, found ", in_quotes(item));
    }
    const std::string_view name = item.substr(0, equals);
    const std::string_view value = item.substr(equals + 1);
    if (name == "exit") {
        apply_exit(value);
    } else if (name == "head") {
        apply_head(value);
    } else {
        apply_levels(name, value);
    }
}

void PlanParser::apply_levels(std::string_view modules, std::string_view value) {
    const char kind = modules.empty() ? '\0' : modules.front();
    if (kind != 'a' && kind != 'm' && kind != 'l') {
        fail_at("a, m, l, exit or head before '='", modules);
    }
    const Level level = parse_level(value);
    if (kind != 'a' && level.kind == Level::Kind::window) {
        fail_at("full or skip, windows being for attention (a) alone", value);
    }
    if (kind != 'm' && level.kind == Level::Kind::experts) {
        fail_at("full, skip or a window, experts being for MLPs (m) alone", value);
    }
    const auto set = [&](Range range) {
        for (int layer = range.first; layer <= range.last; ++layer) {
            if (kind != 'm') {
                plan_.set(layer, Module::attention, level);
            }
            if (kind != 'a') {
                plan_.set(layer, Module::mlp, level);
            }
        }
    };
    if (modules.size() == 1) {
        set({0, plan_.n_layers() - 1});
        return;
    }
    for (const std::string_view range : split(modules.substr(1), '+')) {
        set(parse_range(range));
    }
}

void PlanParser::apply_exit(std::string_view text) {
    const std::optional<int> exit = parse_number(text);
    if (!exit || *exit > plan_.n_layers()) {
        fail_at(concat("a number of layers up to ", plan_.n_layers()), text);
    }
    plan_.skip_from(*exit);
}

void PlanParser::apply_head(std::string_view text) {
    if (text != "full" && text != "reduced") {
        fail_at("full or reduced", text);
    }
    plan_.set_head(text == "full" ? HeadLevel::full : HeadLevel::reduced);
}

PlanParser::Range PlanParser::parse_range(std::string_view text) const {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos || dash == 0) {
        const int layer = parse_layer(text);
        return {layer, layer};
    }
    const Range range{parse_layer(text.substr(0, dash)), parse_layer(text.substr(dash + 1))};
    if (range.first > range.last) {
        fail_at("a range from the lower layer to the higher", text);
    }
    return range;
}

int PlanParser::parse_layer(std::string_view text) const {
    const std::optional<int> layer = parse_number(text);
    if (!layer || *layer >= plan_.n_layers()) {
        fail_at(concat("a layer below ", plan_.n_layers()), text);
    }
    return *layer;
}

Level PlanParser::parse_level(std::string_view text) const {
    if (text == "full") {
        return Level::full;
    }
    if (text == "skip") {
        return Level::skip;
    }
    if (text.starts_with('w')) {
        return parse_window(text);
    }
    if (text.starts_with('e')) {
        return parse_experts(text);
    }
    fail_at("full, skip, a window as wSINKS+RECENT or a number of experts as eN", text);
}

Level PlanParser::parse_experts(std::string_view text) const {
    const std::optional<int> n = text.size() > 1 ? parse_number(text.substr(1)) : std::nullopt;
    if (!n || *n < 1 || *n > kMaxExpertsOfLevel) {
        fail_at(concat("1 to ", kMaxExpertsOfLevel, " experts as eN"), text);
    }
    return Level::with_experts(*n);
}

Level PlanParser::parse_window(std::string_view text) const {
    const std::vector<std::string_view> sizes = split(text.substr(1), '+');
    const std::optional<int> sinks = parse_number(sizes.front());
    const std::optional<int> recent = parse_number(sizes.back());
    if (sizes.size() != 2 || !sinks || !recent) {
        fail_at("a window as wSINKS+RECENT", text);
    }
    const std::int64_t n_rows = std::int64_t{*sinks} + *recent;
    if (n_rows < 1 || n_rows > kMaxWindowRows) {
        fail_at(concat("a window of 1 to ", kMaxWindowRows, " rows"), text);
    }
    return Level::windowed(*sinks, *recent);
}

}  // namespace

std::string to_string(const ModulePlan& plan) {
    const int end = exit_layer(plan);
    std::vector<std::string> items{skips_text(plan, end)};
    for (const Window& window : distinct_windows(plan)) {
        items.push_back(window_text(plan, end, window));
    }
    for (const int n_experts : expert_counts(plan, end)) {
        items.push_back(experts_text(plan, end, n_experts));
    }
    items.push_back(end < plan.n_layers() ? concat("exit=", end) : "");
    items.emplace_back(plan.head() == HeadLevel::reduced ? "head=reduced" : "");
    const std::string text = join(items, ',');
    return text.empty() ? "full" : text;
}

ModulePlan parse_plan(std::string_view text, int n_layers, std::string_view where) {
    if (text == "full") {
        return ModulePlan(n_layers);
    }
    PlanParser parser(n_layers, where);
    for (const std::string_view item : split(text, ',')) {
        if (item.empty()) {
            fail(where, ": expected \"full\" or items such as a3-7=skip joined by commas, found ",
                 in_quotes(text));
        }
        parser.apply(item);
    }
    check_windows(parser.plan(), where);
    return parser.plan();
}

}  // namespace knap
