#include "cli/load.h"

#include <memory>

#include "base/log.h"
#include "cli/progress.h"

namespace knap {

Engine load_engine(RuntimeConfig config, const Environment& environment) {
    if (config.model_path.empty()) {
        config.model_path = find_default_model(environment);
    }
    // Shared, because the engine keeps its configuration, and this callback with it, for its whole
    // life.
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

}  // namespace knap
