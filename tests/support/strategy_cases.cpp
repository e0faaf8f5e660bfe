#include "support/strategy_cases.h"

#include <string>

#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"
#include "support/trained_model.h"

namespace knap::test {
namespace {

constexpr int kTinyContext = 256;
// The controller's windows are for contexts of some hundred tokens.
constexpr int kEagerFactor = 4;

// Random weights hardly agree with themselves when modules are missing, so little is pruned, drafts
// go on when they are unsure, and searches follow each other closely.
const std::vector<StrategyCase> kStrategyCases{
    {"Static", {.strategy = "static", .settings = {{"plan", "m1=skip"}}}},
    {"Tree", {.strategy = "static", .settings = {{"plan", "m1=skip"}, {"width", "3"}}}},
    {"Lookup", {.strategy = "lookup"}},
    {"Cascade", {.strategy = "cascade", .settings = {{"plan", "a2=w4+20,m3=skip"}}}},
    {"Knapspec", {.strategy = "knapspec", .settings = {{"budget", "1"}, {"margin", "0"}}}, false},
    {"EagerKnapspec", eager_knapspec(), true, true},
    {"KnapspecPaper",
     {.strategy = "knapspec-paper",
      .settings =
          {{"tau", "-1"}, {"interval", "7"}, {"start", "prompt"}, {"exit-confidence", "0"}}}},
    {"Clasp",
     {.strategy = "clasp",
      .draft_max = 2,
      .settings = {{"exit-confidence", "1e-6"}, {"interval", "1"}}}},
    {"ClaspHalf",
     {.strategy = "clasp",
      .draft_max = 2,
      .settings = {{"exit-confidence", "1e-6"}, {"layers", "paper"}, {"interval", "2"}}}},
    {"Swift",
     {.strategy = "swift",
      .draft_max = 5,
      .settings = {{"exit-confidence", "1e-6"}, {"window", "2"}, {"bayes-interval", "3"}}}},
    {"SwiftChain",
     {.strategy = "swift",
      .draft_max = 5,
      .settings =
          {{"exit-confidence", "1e-6"}, {"window", "8"}, {"tree", "off"}, {"ratio", "0.25"}}}},
    {"Del", {.strategy = "del"}},
    {"DraftVerify", {.strategy = "draft-verify", .settings = {{"plan", "a2=skip,m1=skip"}}}},
    {"DraftVerifyFixed",
     {.strategy = "draft-verify",
      .settings = {{"plan", "a1=skip"}, {"exit-confidence", "0.01"}, {"eps", "0"}}}},
    {"Asd", {.strategy = "asd", .settings = {{"theta", "-1"}, {"exit-confidence", "0.01"}}}},
    {"AsdOften",
     {.strategy = "asd",
      .settings = {{"theta", "-1"},
                   {"max-run", "1"},
                   {"refresh", "2"},
                   {"rows", "5"},
                   {"exit-confidence", "0"}}}},
    {"Layerskip", {.strategy = "layerskip", .draft_max = 2, .settings = {{"exit", "3"}}}},
    {"Kangaroo", {.strategy = "kangaroo", .settings = {{"exit-confidence", "1e-6"}}}},
    {"DelByLength", {.strategy = "del", .settings = {{"stop", "length"}, {"prompt-rows", "4"}}}},
};

}  // namespace

void PrintTo(const StrategyCase& c, std::ostream* out) {
    *out << c.name;
}

std::span<const StrategyCase> strategy_cases() {
    return kStrategyCases;
}

RuntimeConfig config_of(const StrategyCase& c) {
    if (c.is_eager) {
        return with_eager_profile(
            {.model_path = trained_model(), .n_ctx = kEagerFactor * kTinyContext, .n_threads = 1});
    }
    return config_of_shape("tiny-llama");
}

RuntimeConfig config_of_shape(std::string_view shape) {
    return {.model_path = tiny_model(shape, "Q8_0"),
            .adapter_path = write_tiny(tiny_adapter({.exit_layer = 3, .gain = 0.3f}),
                                       "every-strategy-adapter.gguf"),
            .n_ctx = kTinyContext,
            .n_threads = 1};
}

std::vector<Token> prompt_of(const StrategyCase& c, const Engine& engine, int n, unsigned seed) {
    if (!c.is_eager) {
        return random_tokens(n, 256, seed);
    }
    std::string text;
    while (text.size() < kEagerFactor * kTinyContext + 100) {
        text += "The river carries stones from the hills to the sea. The sea wears the stones. ";
    }
    const std::vector<Token> tokens = engine.tokenize(text, /*add_bos=*/false);
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(10 * seed);
    return {begin, begin + kEagerFactor * n};
}

std::vector<std::vector<Token>> conversation_of(const StrategyCase& c, const Engine& engine) {
    const std::vector<Token> first = prompt_of(c, engine, 60);
    std::vector<Token> beginning = first;
    beginning.resize(40);
    std::vector<Token> other_end = first;
    other_end.back() = (other_end.back() + 1) % 256;
    return {first, beginning, other_end, prompt_of(c, engine, 1, 5), prompt_of(c, engine, 130, 7),
            first};
}

}  // namespace knap::test
