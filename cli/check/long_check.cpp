#include "cli/check/long_check.h"

#include <iostream>
#include <utility>

#include "base/error.h"
#include "cli/check/long_report.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "tools/exactness/exactness.h"

namespace knap {
namespace {

// Cases load the model again and again, each with a cache of its own.
constexpr int kLongContext = 1024;

Engine load_for_long_check(const Settings& settings, const Environment& environment) {
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    if (settings.runtime.n_ctx > 0 || engine.config().n_ctx <= kLongContext) {
        return engine;
    }
    RuntimeConfig config = engine.config();
    config.n_ctx = kLongContext;
    return load_engine(std::move(config), settings.hub, environment);
}

ExactnessOptions options_for(Engine& engine,
                             const CheckArgs& args,
                             const std::vector<DataPrompt>& texts) {
    if (args.n_predict >= engine.config().n_ctx) {
        fail("-n: expected fewer tokens than the context of ", engine.config().n_ctx, ", found ",
             args.n_predict);
    }
    ExactnessOptions options{.config = engine.config(),
                             .contenders = exactness_contenders(engine),
                             .n_predict = args.n_predict,
                             .seed = static_cast<std::uint64_t>(args.seed),
                             .n_tokens = args.n_tokens,
                             .only = args.only_case};
    for (const DataPrompt& text : texts) {
        options.texts.push_back({text.id, engine.tokenize(text.text)});
    }
    std::erase_if(options.texts, [](const CheckPrompt& text) { return text.tokens.empty(); });
    return options;
}

ExactnessOptions prepare(const Settings& settings,
                         const CheckArgs& args,
                         const std::vector<DataPrompt>& texts,
                         const Environment& environment) {
    Engine engine = load_for_long_check(settings, environment);
    check_promises_exactness(engine);
    return options_for(engine, args, texts);
}

}  // namespace

int run_long_check(const Settings& settings,
                   const CheckArgs& args,
                   const std::vector<DataPrompt>& texts,
                   const Environment& environment) {
    if (args.only_case && !args.record.empty()) {
        fail_usage("--case: expected no --record, because the case may be in it already");
    }
    ExactnessRecord record(args.record);
    bool is_complete = true;
    if (args.n_tokens > 0 || args.only_case) {
        const ExactnessOptions options = prepare(settings, args, texts, environment);
        const InterruptScope scope;
        ProgressBar bar("long check");
        is_complete =
            check_exactness(options, record,
                            {.on_progress = [&bar](double fraction) { bar.update(fraction); },
                             .is_cancelled = [&scope] { return scope.signal() != 0; }});
    }
    if (!is_complete) {
        std::cerr << "knap: the check was interrupted"
                  << (args.record.empty() ? "" : "; the same command goes on") << '\n';
        return kExitInterrupted;
    }
    const ExactnessSummary summary = summary_of(record.cases());
    TextOutput output;
    if (settings.wants_json) {
        write_json(output, to_json(summary));
    } else {
        output.write(to_table(summary));
    }
    return summary.all.n_differing == 0 ? kExitDone : kExitFailed;
}

}  // namespace knap
