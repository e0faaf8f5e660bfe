#include "forward/module_plan.h"
#include "forward/plan_text.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"

namespace knap::fuzz::plan_text_target_parts {
namespace {

constexpr int kMostLayers = 64;

// What strategies and costs ask of any plan.
void use(const ModulePlan& plan, int n_context) {
    expect(exact_layers(plan) <= exit_layer(plan), "no layer after the exit runs");
    expect(exit_layer(plan) <= plan.n_layers(), "a plan has no more layers than its model");
    is_accepted([&] { check_runnable(plan, plan.n_layers()); });
    is_accepted([&] { check_experts(plan, 4, "plan"); });
    const ModulePlan acts = canonical(plan, n_context);
    expect(canonical(acts, n_context) == acts, "a canonical plan stays");
    const std::vector<int> windows(static_cast<std::size_t>(plan.n_layers()), 32);
    within_own_windows(plan, windows);
}

// The first bytes are the numbers of layers and of tokens.
void run(std::string_view input) {
    Choices choices(input);
    const int n_layers = 1 + static_cast<int>(choices.below(kMostLayers));
    const int n_context = 16 * choices.byte();
    is_accepted([&] {
        const ModulePlan plan = parse_plan(choices.rest(), n_layers);
        const std::string text = to_string(plan);
        expect(parse_plan(text, n_layers) == plan, "a plan can be read as it is written");
        expect(to_string(parse_plan(text, n_layers)) == text, "a plan is written in one way");
        use(plan, n_context);
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> plans{"full"};
    for (const char* document : {"docs/methods.md", "docs/strategies.md", "docs/controller.md"}) {
        for (const std::string& text : with_any(code_in(document), {"=skip", "=w", "exit="})) {
            plans.push_back(text);
        }
    }
    for (const std::string& text : string_literals("tests/forward/plan_text_test.cpp")) {
        plans.push_back(text);
    }
    for (const std::string& text : deep_and_long()) {
        plans.push_back(text);
        plans.push_back("a" + text + "=skip");
    }
    for (std::string& plan : plans) {
        plan.insert(0, "\x1f\x20");  // 32 layers, 512 tokens
    }
    return plans;
}

}  // namespace
}  // namespace knap::fuzz::plan_text_target_parts

knap::fuzz::Target knap::fuzz::plan_text_target() {
    using namespace plan_text_target_parts;
    return {.name = "plan_text",
            .run = run,
            .seeds = seeds,
            .max_bytes = 1024,
            .word_sources = {"src/forward/plan_text.cpp"}};
}
