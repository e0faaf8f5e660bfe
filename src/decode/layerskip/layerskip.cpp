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
};

constexpr std::array kOptions = {
    StrategyOption<LayerskipOptions>{
        {"exit", "1..L", "layers that draft, of the model's L; a quarter if not given"},
        [](LayerskipOptions& options, std::string_view text) {
            return read_integer(text, 1, std::numeric_limits<int>::max(), options.exit_layer);
        }},
};

int read_exit_layer(const SpeculationOptions& options, int n_layers) {
    LayerskipOptions own;
    apply_settings(options.strategy_options, kOptions, own);
    if (own.exit_layer > n_layers) {
        fail("--strategy-options: expected exit=1..", n_layers, " of this model; found ",
             own.exit_layer);
    }
    if (own.exit_layer > 0 && !options.draft_plan.empty()) {
        fail("--strategy-options: expected either exit or a plan, found both");
    }
    return own.exit_layer > 0 ? own.exit_layer : default_exit_layer(n_layers);
}

}  // namespace

int default_exit_layer(int n_layers) {
    return std::max(1, n_layers / 4);
}

std::unique_ptr<Strategy> build_layerskip(const SpeculationOptions& options,
                                          const StrategyParts& parts) {
    SpeculationOptions with_plan = options;
    const int exit_layer = read_exit_layer(options, parts.config.n_layers);
    if (with_plan.draft_plan.empty()) {
        with_plan.draft_plan = concat("exit=", exit_layer);
    }
    return build_static_plan(with_plan, parts);
}

std::span<const StrategyOptionInfo> layerskip_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
