#include "cli/load.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "cli/fetch/watched_fetch.h"
#include "cli/progress.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "tools/offline_search/offline_search_file.h"

namespace knap {
namespace {

void check_takes_plan(std::string_view name) {
    const auto strategy = std::ranges::find(strategies(), name, &StrategyInfo::name);
    const auto takes_plan = [](const StrategyOptionInfo& option) { return option.key == "plan"; };
    if (std::ranges::none_of(strategy->options, takes_plan)) {
        fail("--plan-file: expected a strategy that drafts with a given plan, found ", name);
    }
}

}  // namespace

std::filesystem::path find_model(const RuntimeConfig& config,
                                 const HubSettings& hub,
                                 const Environment& environment) {
    if (!config.model_path.empty()) {
        return config.model_path;
    }
    return hub.reference.repository.empty() ? find_default_model(environment)
                                            : watched_fetch(hub, environment);
}

Engine load_engine(RuntimeConfig config, const HubSettings& hub, const Environment& environment) {
    config.model_path = find_model(config, hub, environment);
    // Shared, because the engine keeps its configuration, including this callback, for its
    // lifetime.
    auto bar = std::make_shared<ProgressBar>("load");
    config.on_load_progress = [bar](double fraction) { bar->update(fraction); };
    Engine engine(std::move(config));
    bar->finish();
    const RuntimeConfig& effective = engine.config();
    log_info("loaded ", effective.model_path.string(), ": context of ", effective.n_ctx,
             " tokens, ", effective.n_threads, " threads");
    if (const std::optional<AdapterInfo> adapter = engine.info().adapter) {
        log_info("loaded ", adapter->path, ": adapter after layer ", adapter->exit_layer);
    }
    return engine;
}

GenerateOptions generate_options(const Engine& engine, const Settings& settings) {
    GenerateOptions options = settings.generate;
    if (!settings.plan_file.empty()) {
        check_takes_plan(options.speculation.strategy);
        take_plan_of_file(settings.plan_file, plans_model(impl_of(engine)), options.speculation);
    }
    return options;
}

}  // namespace knap
