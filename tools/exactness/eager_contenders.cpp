#include "tools/exactness/eager_contenders.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "tools/check/eager_profile.h"

namespace knap {
namespace {

std::vector<Contender> with_plans(int n_layers) {
    const int middle = n_layers / 2;
    const std::string one_mlp = concat("m", middle, "=skip");
    const std::string one_window = concat("a", middle, "=w4+20,m", n_layers - 1, "=skip");
    const std::string one_attention = concat("a", middle, "=skip");
    return {
        {"static, without an MLP", {.strategy = "static", .settings = {{"plan", one_mlp}}}},
        {"static, without an MLP, trees",
         {.strategy = "static", .settings = {{"plan", one_mlp}, {"width", "3"}}}},
        {"cascade, one window", {.strategy = "cascade", .settings = {{"plan", one_window}}}},
        {"draft-verify, without an attention",
         {.strategy = "draft-verify", .settings = {{"plan", one_attention}}}},
        {"draft-verify, fixed confidence",
         {.strategy = "draft-verify",
          .settings = {{"plan", one_attention}, {"exit-confidence", "0.01"}, {"eps", "0"}}}},
        {"layerskip, all layers but one",
         {.strategy = "layerskip",
          .draft_max = 2,
          .settings = {{"exit", concat(std::max(1, n_layers - 1))}}}},
    };
}

// Where copies are drafted, plans hardly are.
SpeculationOptions without_copies(SpeculationOptions speculation) {
    speculation.settings["copies"] = "off";
    return speculation;
}

const std::vector<Contender>& with_searches() {
    static const std::vector<Contender> contenders{
        {"knapspec, all of the time for searches",
         {.strategy = "knapspec", .settings = {{"budget", "1"}, {"margin", "0"}}}},
        {"knapspec, small windows", eager_knapspec()},
        {"knapspec, small windows, no copies", without_copies(eager_knapspec())},
        {"knapspec-paper, often",
         {.strategy = "knapspec-paper",
          .settings =
              {{"tau", "-1"}, {"interval", "7"}, {"start", "prompt"}, {"exit-confidence", "0"}}}},
        {"clasp, every round",
         {.strategy = "clasp",
          .draft_max = 2,
          .settings = {{"exit-confidence", "1e-6"}, {"interval", "1"}}}},
        {"clasp, half of the layers",
         {.strategy = "clasp",
          .draft_max = 2,
          .settings = {{"exit-confidence", "1e-6"}, {"layers", "paper"}, {"interval", "2"}}}},
        {"swift, often",
         {.strategy = "swift",
          .draft_max = 5,
          .settings = {{"exit-confidence", "1e-6"}, {"window", "2"}, {"bayes-interval", "3"}}}},
        {"swift, chains",
         {.strategy = "swift",
          .draft_max = 5,
          .settings =
              {{"exit-confidence", "1e-6"}, {"window", "8"}, {"tree", "off"}, {"ratio", "0.25"}}}},
        {"del, by length",
         {.strategy = "del", .settings = {{"stop", "length"}, {"prompt-rows", "4"}}}},
        {"asd, any attention",
         {.strategy = "asd", .settings = {{"theta", "-1"}, {"exit-confidence", "0.01"}}}},
        {"asd, every other round",
         {.strategy = "asd",
          .settings = {{"theta", "-1"},
                       {"max-run", "1"},
                       {"refresh", "2"},
                       {"rows", "5"},
                       {"exit-confidence", "0"}}}},
        {"kangaroo, unsure", {.strategy = "kangaroo", .settings = {{"exit-confidence", "1e-6"}}}},
    };
    return contenders;
}

bool can_run(const Contender& contender, const EngineParts& parts) {
    const auto strategy =
        std::ranges::find(strategies(), contender.speculation.strategy, &StrategyInfo::name);
    return parts.n_layers >= strategy->min_layers &&
           (!strategy->needs_adapter || parts.has_adapter);
}

}  // namespace

std::vector<Contender> eager_contenders(const EngineParts& parts) {
    std::vector<Contender> contenders = with_plans(parts.n_layers);
    std::ranges::copy(with_searches(), std::back_inserter(contenders));
    std::erase_if(contenders, [&](const Contender& c) { return !can_run(c, parts); });
    return contenders;
}

}  // namespace knap
