#include "decode/strategy.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "support/strategy_rig.h"

namespace knap::fuzz::strategy_options_target_parts {
namespace {

constexpr Token kToken = 7;
constexpr int kPrompt = 40;  // tokens

// A session that has read its prompt; the last token is pending.
struct Session {
    Session() { rig.rig.feed(std::vector<Token>(kPrompt - 1, kToken)); }

    test::StrategyRig rig;
    std::vector<Token> prompt = std::vector<Token>(kPrompt, kToken);
};

Session& session() {
    static Session one;
    return one;
}

// A line with the name of a strategy, a byte for the longest draft, and settings.
void run(std::string_view input) {
    Choices choices(input);
    SpeculationOptions options{.strategy = std::string(choices.line())};
    options.draft_max = choices.byte();
    is_accepted([&] {
        options.settings = parse_settings(choices.rest());
        const auto strategy = make_strategy(options, session().rig.parts());
        strategy->begin({.prompt = session().prompt});
        strategy->propose({.history = session().prompt, .n_room = 8, .n_expected = 100});
    });
}

// Settings of all strategies, each with the first of its values.
std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const StrategyInfo& strategy : list_strategies()) {
        const std::string name(strategy.name);
        all.push_back(name + "\n" + '\0');
        std::string together;
        for (const StrategyOptionInfo& option : strategy.options) {
            const std::string setting =
                std::string(option.key) + "=" +
                std::string(option.values.substr(0, option.values.find('|')));
            all.push_back(name + "\n\x04" + setting);
            together += (together.empty() ? "" : ",") + setting;
        }
        all.push_back(name + "\n\x08" + together);
    }
    for (const std::string& text : with_any(code_in("docs/strategies.md"), {"="})) {
        all.push_back("knapspec\n\x08" + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::strategy_options_target_parts

knap::fuzz::Target knap::fuzz::strategy_options_target() {
    using namespace strategy_options_target_parts;
    return {.name = "strategy_options",
            .run = run,
            .seeds = seeds,
            .max_bytes = 512,
            .word_sources = {"src/decode/strategy.cpp", "src/decode/knapspec/options.cpp",
                             "src/decode/knapspec_paper/options.cpp",
                             "src/decode/clasp/options.cpp", "src/decode/swift/options.cpp",
                             "src/decode/del/options.cpp", "src/decode/asd/options.cpp",
                             "src/decode/static/static_plan.h", "src/forward/plan_text.cpp"}};
}
