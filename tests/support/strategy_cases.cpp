#include "support/strategy_cases.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "support/eager_profile.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"
#include "support/trained_model.h"
#include "tools/exactness/eager_contenders.h"

namespace knap::test {
namespace {

constexpr int kTinyContext = 256;
// The controller's windows are for contexts of some hundred tokens.
constexpr int kEagerFactor = 4;

// The settings of the long check (tools/exactness/eager_contenders.h).
SpeculationOptions eager(std::string_view name) {
    static const std::vector<Contender> contenders =
        eager_contenders({.n_layers = 4, .has_adapter = true});
    const auto found = std::ranges::find(contenders, name, &Contender::name);
    KNAP_ASSERT(found != contenders.end(), "the list has it");
    return found->speculation;
}

const std::vector<StrategyCase>& all_cases() {
    static const std::vector<StrategyCase> cases{
        {"Static", {.strategy = "static", .settings = {{"plan", "m1=skip"}}}},
        {"Tree", {.strategy = "static", .settings = {{"plan", "m1=skip"}, {"width", "3"}}}},
        {"Lookup", {.strategy = "lookup"}},
        {"Cascade", eager("cascade, one window")},
        {"Knapspec", eager("knapspec, all of the time for searches"), false},
        {"EagerKnapspec", eager_knapspec(), true, true},
        {"KnapspecPaper", eager("knapspec-paper, often")},
        {"Clasp", eager("clasp, every round")},
        {"ClaspHalf", eager("clasp, half of the layers")},
        {"Swift", eager("swift, often")},
        {"SwiftChain", eager("swift, chains")},
        {"Del", {.strategy = "del"}},
        {"DraftVerify", {.strategy = "draft-verify", .settings = {{"plan", "a2=skip,m1=skip"}}}},
        {"DraftVerifyFixed",
         {.strategy = "draft-verify",
          .settings = {{"plan", "a1=skip"}, {"exit-confidence", "0.01"}, {"eps", "0"}}}},
        {"Asd", eager("asd, any attention")},
        {"AsdOften", eager("asd, every other round")},
        {"Layerskip", eager("layerskip, all layers but one")},
        {"Kangaroo", eager("kangaroo, unsure")},
        {"DelByLength", eager("del, by length")},
    };
    return cases;
}

}  // namespace

void PrintTo(const StrategyCase& c, std::ostream* out) {
    *out << c.name;
}

std::span<const StrategyCase> strategy_cases() {
    return all_cases();
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
