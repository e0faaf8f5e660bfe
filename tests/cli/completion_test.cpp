// Shell completions offer exactly the flags in the help.
#include <regex>
#include <set>

#include "cli/command.h"

namespace knap::completion_test {
namespace {

const Words kCommands{"run",     "chat",   "serve", "info",   "check",  "profile",
                      "explain", "search", "bench", "report", "worker", "make-model"};

// The flags at the beginning of the help's lines, such as "-n" and "--n-predict".
std::set<std::string> flags_of(const Words& command) {
    std::set<std::string> flags;
    const std::string help = run_knap(command + Words{"--help"}).output;
    const std::regex line("\n  (-[^\n]*)");
    const std::regex flag("^(--?[a-z][a-z-]*)(, )?");
    for (std::sregex_iterator found(help.begin(), help.end(), line), end; found != end; ++found) {
        std::string rest = (*found)[1];
        for (std::smatch match; std::regex_search(rest, match, flag); rest = match.suffix()) {
            flags.insert(match[1]);
            if (!match[2].matched) {
                break;
            }
        }
    }
    return flags;
}

std::set<std::string> all_flags() {
    std::set<std::string> flags = flags_of({});
    for (const std::string& command : kCommands) {
        flags.merge(flags_of({command}));
    }
    return flags;
}

// The names listed at the end of the help.
std::vector<std::string> strategies() {
    const std::string help = run_knap({"run", "--help"}).output;
    const std::string list = help.substr(help.find("\nStrategies:\n"));
    std::vector<std::string> names;
    const std::regex line("\n  ([a-z_-]+) ");
    for (std::sregex_iterator found(list.begin(), list.end(), line), end; found != end; ++found) {
        names.push_back((*found)[1]);
    }
    return names;
}

std::string completion(const std::string& name) {
    const auto text = read_text(std::filesystem::path(KNAP_ROOT) / "completions" / name);
    EXPECT_FALSE(text.empty()) << name;
    return text;
}

bool has_word(const std::string& text, const std::string& word) {
    return std::regex_search(text, std::regex("(^|[^A-Za-z-])" + word + "($|[^A-Za-z-])"));
}

TEST(Completions, HelpIsParsedCorrectly) {
    const auto flags = flags_of({"run"});
    EXPECT_THAT(flags,
                testing::IsSupersetOf({"-n", "--n-predict", "--predict", "-ctk", "--cache-type-k",
                                       "-sys", "--system", "--json", "-h", "--help"}));
    EXPECT_GT(flags.size(), 40u);
}

TEST(Completions, BashAndZshKnowEveryFlag) {
    for (const char* name : {"knap.bash", "_knap"}) {
        const std::string text = completion(name);
        for (const std::string& flag : all_flags()) {
            EXPECT_TRUE(has_word(text, flag)) << name << " lacks " << flag;
        }
        for (const std::string& command : kCommands) {
            EXPECT_TRUE(has_word(text, command)) << name << " lacks " << command;
        }
    }
}

TEST(Completions, FishKnowsEveryFlag) {
    const std::string text = completion("knap.fish");
    for (const std::string& flag : all_flags()) {
        const bool is_long = flag.starts_with("--");
        const std::string name = flag.substr(is_long ? 2 : 1);
        const std::string kind = is_long ? "-l " : name.size() == 1 ? "-s " : "-o ";
        EXPECT_TRUE(has_word(text, kind + name)) << "knap.fish lacks " << flag;
    }
    for (const std::string& command : kCommands) {
        EXPECT_TRUE(has_word(text, "-a " + command)) << "knap.fish lacks " << command;
    }
}

TEST(Completions, OfferEveryStrategyAndAcceptanceRule) {
    const auto names = strategies();
    ASSERT_THAT(names, testing::Contains("autoregressive"));
    std::string listed;
    for (const std::string& name : names) {
        listed += (listed.empty() ? "" : " ") + name;
    }
    for (const char* name : {"knap.bash", "_knap", "knap.fish"}) {
        const std::string text = completion(name);
        EXPECT_THAT(text, testing::HasSubstr(listed)) << name;
        EXPECT_THAT(text, testing::HasSubstr("shared-noise ratio equality")) << name;
    }
}

TEST(Completions, OfferEveryShape) {
    for (const char* name : {"knap.bash", "_knap", "knap.fish"}) {
        const std::string text = completion(name);
        for (const char* shape : shapes_named("")) {
            EXPECT_TRUE(has_word(text, shape)) << name << " lacks " << shape;
        }
    }
}

TEST(Completions, OfferNoUnknownFlag) {
    const auto known = all_flags();
    const std::regex long_flag("--[a-z][a-z-]+");
    for (const char* name : {"knap.bash", "_knap"}) {
        const std::string text = completion(name);
        for (std::sregex_iterator found(text.begin(), text.end(), long_flag), end; found != end;
             ++found) {
            EXPECT_TRUE(known.contains(found->str())) << name << " offers " << found->str();
        }
    }
}

}  // namespace
}  // namespace knap::completion_test
