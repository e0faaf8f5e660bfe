#include "cli/flags/help.h"

#include <algorithm>
#include <utility>

#include "cli/flags/arguments.h"

namespace knap {

HelpFormatter::HelpFormatter() {
    column_width(37);
    label("OPTIONS", "FLAGS");
    label("SUBCOMMAND", "COMMAND");
}

// CLI11 puts an empty line both before and after a group. Drops the one before.
std::string HelpFormatter::make_group(std::string title,
                                      bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
    return Formatter::make_group(std::move(title), is_positional, std::move(options)).substr(1);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
    return "\n" + Formatter::make_usage(app, std::move(name)) + "\n";
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
    if (is_positional) {
        return Formatter::make_option_name(option, is_positional);
    }
    std::vector<std::string> names;
    for (const auto& name : option->get_snames()) {
        names.push_back("-" + name);
    }
    const auto& long_names = option->get_lnames();
    for (const Alias& alias : kAliases) {
        if (std::ranges::find(long_names, alias.long_name) != long_names.end()) {
            names.emplace_back(alias.spelling);
        }
    }
    for (const auto& name : long_names) {
        names.push_back("--" + name);
    }
    return CLI::detail::join(names, ", ");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
    const bool shows_type = option->get_type_size() != 0 && !option->get_type_name().empty();
    return shows_type ? " " + option->get_type_name() : std::string();
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
    std::string text = option->get_description();
    if (option->get_required()) {
        text += " (required)";
    } else if (!option->get_default_str().empty()) {
        text += " (default: " + option->get_default_str() + ")";
    }
    return text;
}

}  // namespace knap
