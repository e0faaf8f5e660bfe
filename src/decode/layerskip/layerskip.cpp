#include "decode/layerskip/layerskip.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "decode/option_table.h"
#include "decode/static/static_plan.h"
#include "model/config.h"

namespace knap {

namespace {

struct LayerskipOptions {
    int exit_layer = 0;  // 0: not given
    StaticPlanOptions drafting{};
};

constexpr auto kOptions = join_tables(
    std::array{StrategyOption<LayerskipOptions>{
        {"exit", "1..L", "exit after this many of the model's L layers (default: L / 4)"},
        [](LayerskipOptions& options, std::string_view text) {
            return read_integer(text, 1, std::numeric_limits<int>::max(), options.exit_layer);
        }}},
    static_plan_settings<LayerskipOptions>());

void check_exit(const LayerskipOptions& own, int n_layers) {
    if (own.exit_layer > n_layers) {
        fail("`.settings`: expected exit=1..", n_layers, " for this model, found ", own.exit_layer);
    }
    if (own.exit_layer > 0 && !own.drafting.plan.empty()) {
        fail("`.settings`: expected either exit or a plan, found both");
    }
}

}  // namespace

int default_exit_layer(int n_layers) {
    return std::max(1, n_layers / 4);
}

std::unique_ptr<Strategy> build_layerskip(const SpeculationOptions& options,
                                          const StrategyParts& parts) {
    const int n_layers = parts.config.n_layers;
    LayerskipOptions own;
    own.drafting.length = draft_max_or(options, own.drafting.length);
    apply_settings(options.settings, kOptions, own);
    check_exit(own, n_layers);
    if (own.drafting.plan.empty()) {
        own.drafting.plan =
            concat("exit=", own.exit_layer > 0 ? own.exit_layer : default_exit_layer(n_layers));
    }
    return std::make_unique<StaticPlanStrategy>(
        make_static_plan(own.drafting, options.strategy, parts));
}

std::span<const StrategyOptionInfo> layerskip_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
