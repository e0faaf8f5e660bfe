#include "cli/flags/arguments.h"

#include <algorithm>
#include <optional>

#include "cli/exit_code.h"

namespace knap {
namespace {

// A word that should be a flag: its name as CLI11 knows it, and the value after "=", if any.
struct Flag {
    std::string name;
    std::optional<std::string> value;
};

Flag split_flag(const std::string& word) {
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    if (equals != std::string::npos) {
        return {word.substr(0, equals), word.substr(equals + 1)};
    }
    const auto* alias = std::ranges::find(kAliases, word, &Alias::spelling);
    return {alias == std::end(kAliases) ? word : concat("--", alias->long_name), std::nullopt};
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_min() > 0;
}

bool takes_arguments(const CLI::App& command) {
    return std::ranges::any_of(command.get_options(), &CLI::Option::get_positional);
}

const CLI::App& find_command(const CLI::App& root, const std::string& word) {
    for (const CLI::App* command : root.get_subcommands({})) {
        if (command->check_name(word)) {
            return *command;
        }
    }
    fail_usage("unknown command '", word, "', expected one of: ",
               join(root.get_subcommands({}), ", ",
                    [](const CLI::App* command) { return command->get_name(); }));
}

}  // namespace

std::vector<std::string> spell_out(const CLI::App& root, const std::vector<std::string>& words) {
    std::vector<std::string> spelled;
    const CLI::App* app = &root;
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (!word->starts_with('-') || *word == "-") {
            if (app == &root) {
                app = &find_command(root, *word);
            } else if (!takes_arguments(*app)) {
                fail_usage("unexpected argument '", *word, "'");
            }
            spelled.push_back(*word);
            continue;
        }
        const Flag flag = split_flag(*word);
        const CLI::Option* option = app->get_option_no_throw(flag.name);
        if (option == nullptr) {
            fail_usage("unknown flag '", *word, "'");
        }
        if (flag.value && !takes_value(*option)) {
            fail_usage(flag.name, ": expected no value, found '", *flag.value, "'");
        }
        spelled.push_back(flag.name);
        if (!takes_value(*option)) {
            continue;
        }
        if (!flag.value && std::next(word) == words.end()) {
            fail_usage(*word, ": expected a value, found the end of the command line");
        }
        spelled.push_back(flag.value ? *flag.value : *++word);
    }
    return spelled;
}

}  // namespace knap
